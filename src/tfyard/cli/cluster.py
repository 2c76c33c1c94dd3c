"""Options of commands that use a cluster: those of kubectl, and the user of helper pods."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from tfyard.errors import TfyardError, Usage
from tfyard.kube import Access, kubeconfig, requests
from tfyard.kube.sync import SyncClient

F = TypeVar("F", bound=Callable[..., Any])
ASKING, WRITING, COMPLETING = 10.0, 30.0, 2.0
"""Default timeouts in seconds: of questions, of an installation, and of completion in a shell."""
DEFAULTS: Mapping[str, Any] = {
    "kubeconfig": "",
    "context": "",
    "as_user": "",
    "as_groups": (),
    "namespace": "",
    "local": False,
}


# --- completion in a shell, see `offers.py`


def typed_options(context: click.Context) -> dict[str, Any]:
    """Values of the options that have been typed so far, for `connect`."""
    typed = {name: value for name, value in context.params.items() if value is not None}
    return {**DEFAULTS, **typed, "request_timeout": COMPLETING}


def _contexts(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    with suppress(TfyardError):
        names = kubeconfig.contexts(os.environ, typed_options(context)["kubeconfig"])
        return sorted(name for name in names if name.startswith(incomplete))
    return []


def _namespaces(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    with suppress(TfyardError), connect({**typed_options(context), "namespace": ""}) as client:
        items = client.send(requests.get(requests.NAMESPACES.path()))["items"]
        names = [item["metadata"]["name"] for item in items]
        return sorted(name for name in names if name.startswith(incomplete))
    return []


# --- options


def cluster_options(command: F) -> F:
    """--kubeconfig, --context, --as, --as-group, --request-timeout; `connect` takes their values."""
    return _access_options(_timeout(WRITING)(command))


class _Seconds(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Accepts a unit, as kubectl does: 5s, 1m."""
        if isinstance(value, str) and value.endswith(("s", "m", "h")):
            from tfyard.formats import durations  # 10 ms, and a timeout is rarely given

            value = durations.parse(value) or value
        return super().convert(value, param, ctx)


def _timeout(default: float) -> Callable[[F], F]:
    return click.option(
        "--request-timeout",
        type=_Seconds(min=0, min_open=True),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="Give up on a server that does not answer for so long.",
    )


def _access_options(command: F) -> F:
    for option in reversed(
        (
            click.option(
                "--kubeconfig",
                default="",
                metavar="FILE",
                help="Kubeconfig file; default: the one that kubectl uses.",
            ),
            click.option(
                "--context",
                default="",
                metavar="NAME",
                shell_complete=_contexts,
                help="Context of the kubeconfig.",
            ),
            click.option("--as", "as_user", default="", metavar="USER", help="Act as another user."),
            click.option(
                "--as-group",
                "as_groups",
                multiple=True,
                metavar="GROUP",
                help="Act as a member of these groups.",
            ),
        )
    ):
        command = option(command)
    return command


def repeated(options: Mapping[str, Any]) -> list[str]:
    """The options that choose a cluster and a namespace, as words of another command."""
    names = {"-n": "namespace", "--context": "context", "--kubeconfig": "kubeconfig", "--as": "as_user"}
    words = [word for name, key in names.items() if options[key] for word in (name, options[key])]
    return words + [word for group in options["as_groups"] for word in ("--as-group", group)]


def namespace_options(command: F) -> F:
    """The options of `cluster_options`, and -n; `connect` takes their values."""
    of_namespace = click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        shell_complete=_namespaces,
        help="Namespace; default: that of the context.",
    )
    return _access_options(of_namespace(_timeout(ASKING)(command)))


def job_options(command: F) -> F:
    """The options of commands about a job, wherever it runs: those of `namespace_options`, and --local."""
    return namespace_options(
        click.option("--local", is_flag=True, help="Look only at runs on this machine.")(command)
    )


helper_user_option = click.option(
    "--helper-user",
    type=click.IntRange(0),
    metavar="UID",
    help="User of the helper pod; default: that of the job's pods, if set, else 65532.",
)


def connect(options: Mapping[str, Any]) -> SyncClient:
    """Connect to the cluster that the values of `cluster_options` or `namespace_options` describe."""
    chosen = access(*(options[name] for name in ("kubeconfig", "context", "as_user", "as_groups")))
    if options.get("namespace"):
        chosen = replace(chosen, namespace=options["namespace"])
    return SyncClient(chosen, options["request_timeout"])


def is_configured(options: Mapping[str, Any]) -> bool:
    """Whether a cluster is configured or named; otherwise only runs on this machine are listed."""
    chosen = any(options.get(name) for name in ("kubeconfig", "context", "namespace", "as_user"))
    return chosen or kubeconfig.is_present(os.environ)


def access(kubeconfig_file: str, context: str, as_user: str, as_groups: tuple[str, ...]) -> Access:
    if as_groups and not as_user:
        raise Usage("--as-group needs --as: groups are those of another user")
    loaded = kubeconfig.load(os.environ, kubeconfig_file, context)
    if not as_user:
        return loaded
    return replace(loaded, user=replace(loaded.user, impersonate=as_user, impersonate_groups=list(as_groups)))
