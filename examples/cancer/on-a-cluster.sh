#!/bin/sh
# The job of this folder as a TFJob, on a real Kubernetes on this machine, from `up` to `down`.
set -eu
name=${1:-tfyard-demo}
here=$(dirname "$0")
cluster() { tfyard dev "$1" --name "$name"; }
kubectl() { tfyard dev kubectl --name "$name" "$@"; }

trap 'cluster down' EXIT
trap 'exit 130' INT TERM
cluster up
set -x
tfyard render "$here/job.yaml" | kubectl apply -f -
kubectl wait --for=condition=Running --timeout=5m tfjob/cancer
kubectl get pods -o wide
kubectl logs -f cancer-chief-0
kubectl wait --for=condition=Succeeded --timeout=1m tfjob/cancer
kubectl get tfjobs
