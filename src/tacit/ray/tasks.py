"""What Ray tells about the task that is running."""

from __future__ import annotations


def current_task() -> int | None:
    """The number of the task that is running, where Ray tells: there is no public way to ask."""
    try:
        from ray.data._internal.execution.interfaces import TaskContext

        context = TaskContext.get_current()
        return None if context is None else int(context.task_idx)
    except (ImportError, AttributeError, TypeError):
        return None
