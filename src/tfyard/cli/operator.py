"""`tfyard operator`: the operator that reconciles the TFJobs of a cluster."""

import asyncio
import os
from typing import Any

import click

from tfyard import extras
from tfyard.kube import kubeconfig as kubeconfigs
from tfyard.model.names import OPERATOR_PORT


@click.command("operator")
@click.option(
    "--kubeconfig",
    default="",
    metavar="FILE",
    help="Kubeconfig file; default: in a pod, its ServiceAccount, else the one that kubectl uses.",
)
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option(
    "--namespaces", default="", metavar="A,B", help="Reconcile only TFJobs of these namespaces; default: all."
)
@click.option(
    "--config",
    metavar="FILE",
    help="Config file: accelerators, default images, cluster domain, services, dialect.",
)
@click.option(
    "--compat",
    type=click.Choice(["kubeflow"]),
    help="Behave exactly like training-operator: Services, TF_CONFIG, backoffLimit, evictions.",
)
@click.option(
    "--gang-scheduler",
    type=click.Choice(["none", "auto", "core", "volcano", "scheduler-plugins"]),
    default="none",
    show_default=True,
    help="Start all pods of a job or none; auto: by the installed scheduler, for jobs with a schedulingPolicy.",
)
@click.option(
    "--gang-scheduler-name",
    default="",
    metavar="NAME",
    help="Name of the scheduler of scheduler-plugins; also without --gang-scheduler, as for training-operator.",
)
@click.option(
    "--kueue-pod-groups", is_flag=True, help="Let Kueue queue the pods, where it does not manage TFJobs."
)
@click.option("--install-crds", is_flag=True, help="Apply tfyard's CRDs of TFJob first.")
@click.option("--leader-elect/--no-leader-elect", default=True, help="Let only one of several operators act.")
@click.option("--lease-namespace", default="", help="Namespace of the lease; default: the operator's own.")
@click.option(
    "--bind",
    default=f"127.0.0.1:{OPERATOR_PORT}",
    show_default=True,
    help="Address of /metrics, /healthz and /readyz.",
)
@click.option(
    "--log",
    type=click.Choice(["json", "text"]),
    default="json",
    show_default=True,
    help="Format of the logs.",
)
def command(kubeconfig: str, context: str, namespaces: str, log: str, **options: Any) -> None:
    """Run the operator: reconcile TFJobs until each of them has ended.

    It replaces Kubeflow's training-operator for TFJob. In a pod it uses the cluster of the pod, elsewhere the
    context of kubectl.

    \b
    Examples:
      tfyard operator --install-crds                  # on this machine, with the context of kubectl
      tfyard operator --namespaces team-a,team-b
      tfyard operator --compat kubeflow --log text
    """
    with extras.needs("operator", "the operator"):
        from tfyard.controller import log_format, process  # with packages that the extra brings

    log_format.configure("json" if log == "json" else "text")
    chosen = tuple(name.strip() for name in namespaces.split(",") if name.strip())
    access = kubeconfigs.load(os.environ, kubeconfig, context)
    asyncio.run(process.serve(access, process.OperatorOptions(namespaces=chosen, **options)))
