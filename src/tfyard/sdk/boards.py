"""TensorBoard for runs on this machine, which share one, and for jobs of a cluster."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.extras import needs
from tfyard.kube import Access
from tfyard.overview.record import RunRecord
from tfyard.remote.jobs import Found
from tfyard.sdk import pages
from tfyard.sdk.pages import Here, Page


class Source(Struct, frozen=True, kw_only=True):
    """Where the summaries are, and how a helper pod reads them; empty: as the job says."""

    log_dir: str = ""
    image: str = ""
    user: int | None = None


@asynccontextmanager
async def of_jobs(
    access: Access, jobs: Sequence[Found], source: Source, here: Here
) -> AsyncIterator[list[Page]]:
    """The one beside a job, and a helper pod for all others of a namespace."""
    with needs("kubernetes", "TensorBoard of a job on a cluster"):
        from tfyard.kube import Client
        from tfyard.remote import job_paths, tensorboard
    async with Client(access) as client, AsyncExitStack() as stack:
        made, others = list[Page](), list[tensorboard.Summaries]()
        for job in jobs:
            choice = None if source.log_dir else await tensorboard.beside(client, job)
            if choice is None:
                part = tensorboard.summaries(job, source.log_dir)
                others.append(replace(part, node=await job_paths.node_of(client, job, part.mounts)))
            else:
                making = pages.beside(client, choice, f"TensorBoard of {job.name}", here)
                made.append(await stack.enter_async_context(making))
        for parts in tensorboard.shared(others):
            helper = tensorboard.helper(parts, source.image, source.user)
            title = f"TensorBoard of {', '.join(part.name for part in parts)}"
            made.append(await stack.enter_async_context(pages.in_helper(client, helper, title, here)))
        yield made


@asynccontextmanager
async def of_runs(
    runs: Sequence[tuple[RunDirectory, RunRecord]], log_dir: str, here: Here
) -> AsyncIterator[list[Page]]:
    from tfyard.local import summaries

    folders = {record.name: summaries.folder(run, record, log_dir) for run, record in runs}
    async with summaries.board(folders) as reach:
        over = asyncio.ensure_future(reach.over())
        async with pages.page(f"TensorBoard of {', '.join(folders)}", reach, here, over) as made:
            yield [made]


@asynccontextmanager
async def answering(making: AbstractAsyncContextManager[list[Page]]) -> AsyncIterator[str]:
    """The address of the only page, once there is something to see."""
    async with making as (made,):
        await pages.until_answered(made)
        yield made.url
