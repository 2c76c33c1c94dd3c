"""TensorBoard for runs on this machine, which share one, and for jobs of a cluster."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from tfyard.cli import target
from tfyard.cli.target import ClusterJob, LocalRun
from tfyard.cli.web_session import Page, Show, page, stop
from tfyard.cli.web_session import show as show_pages
from tfyard.extras import needs
from tfyard.model.names import TENSORBOARD_PORT
from tfyard.remote.forwarding import Port


class Source(Struct, frozen=True, kw_only=True):
    """Where the summaries are, and how a helper pod reads them; empty: as the job says."""

    log_dir: str = ""
    image: str = ""
    user: int | None = None


async def show(found: Sequence[target.Target], source: Source, wanted: Show) -> None:
    runs = [each for each in found if isinstance(each, LocalRun)]
    jobs = [each for each in found if isinstance(each, ClusterJob)]
    port = Port(TENSORBOARD_PORT, wanted.port)
    async with AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(_of_runs(runs, source.log_dir, port))] if runs else []
        if jobs:
            pages += await _of_jobs(stack, jobs, source, port)
        await show_pages(pages, wanted)


async def _of_jobs(
    stack: AsyncExitStack, jobs: Sequence[ClusterJob], source: Source, port: Port
) -> list[Page]:
    """The one beside a job, and a helper pod for all others of a namespace."""
    with needs("kubernetes", "TensorBoard of a job on a cluster"):
        from tfyard.cli import pod_pages
        from tfyard.kube import Client
        from tfyard.remote import job_paths, tensorboard
    for job in jobs:
        job.client.close()
    client = await stack.enter_async_context(Client(jobs[0].client.access))
    pages, others = list[Page](), list[tensorboard.Summaries]()
    for job in jobs:
        choice = None if source.log_dir else await tensorboard.beside(client, job.found)
        if choice is None:
            part = tensorboard.summaries(job.found, source.log_dir)
            node = await job_paths.node_of(client, job.found, part.mounts)
            others.append(replace(part, node=node))
        else:
            making = pod_pages.beside(client, choice, f"TensorBoard of {job.found.name}", port)
            pages.append(await stack.enter_async_context(making))
    for parts in tensorboard.shared(others):
        helper = tensorboard.helper(parts, source.image, source.user)
        title = f"TensorBoard of {', '.join(part.name for part in parts)}"
        pages.append(await stack.enter_async_context(pod_pages.in_helper(client, helper, title, port)))
    return pages


@asynccontextmanager
async def _of_runs(runs: Sequence[LocalRun], log_dir: str, port: Port) -> AsyncIterator[Page]:
    from tfyard.local import summaries

    folders = {run.record.name: summaries.folder(run.directory, run.record, log_dir) for run in runs}
    async with summaries.board(folders) as reach:
        over = asyncio.ensure_future(reach.over())
        try:
            async with page(f"TensorBoard of {', '.join(folders)}", reach, port, over) as made:
                yield made
        finally:
            await stop(over)
