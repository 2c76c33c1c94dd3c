// CoreDNS with the plugins that the node's Corefile uses; all of them would take three times as long to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/template"
)

// A query passes the plugins in this order, which is that of CoreDNS's own plugin.cfg.
var order = []string{"bind", "errors", "cache", "loadbalance", "template", "kubernetes"}

func main() {
	dnsserver.Directives = order
	coremain.Run()
}
