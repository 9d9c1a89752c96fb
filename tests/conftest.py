"""Settings for all tests: hypothesis must be repeatable and must not time single examples; programs must be legal."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tacit.compiler import eliminate
from tacit.compiler.program import Program, check
from tests.helpers import tries
from tests.switching import auto_changes_its_runner, natural_choice

__all__ = ["auto_changes_its_runner", "natural_choice"]

settings.register_profile(
    "tacit", tries(60), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tacit")


@pytest.fixture(autouse=True, scope="session")
def every_compiled_program_is_legal() -> Iterator[None]:
    """Check every program that is compiled in any test."""
    run = eliminate.Elimination.run

    def checked(self: eliminate.Elimination) -> tuple[Program, eliminate.Plan]:
        program, plan = run(self)
        check(program)
        return program, plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eliminate.Elimination, "run", checked)
        yield
