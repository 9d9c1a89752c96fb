"""The processor's own note that some result was too small for a float, for numba kernels.

A processor sets its underflow flag when a result is so small that digits are lost (IEEE 754, section 7.5), and it stays
set until it is cleared. Asking costs a few nanoseconds for a whole tile of rows, where a look at every number would
cost as much as computing it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-overload"

from __future__ import annotations

from numba import types

from tacit.base.jit import jit
from tacit.engines.tape.instructions import UNDERFLOW

_test = types.ExternalFunction("fetestexcept", types.intc(types.intc))
_clear = types.ExternalFunction("feclearexcept", types.intc(types.intc))
_raise = types.ExternalFunction("feraiseexcept", types.intc(types.intc))


@jit(nogil=True)
def clear_underflow():
    """Forget what happened before."""
    if _test(UNDERFLOW) != 0:  # to ask is far cheaper than to clear
        _clear(UNDERFLOW)


@jit(nogil=True)
def raise_underflow():
    """Set the flag; a product that underflows would not do, since compilers may compute it where it is not wanted."""
    _raise(UNDERFLOW)


@jit(nogil=True)
def underflowed():
    """Whether a result was too small for a float since the last question."""
    if _test(UNDERFLOW) == 0:
        return False
    _clear(UNDERFLOW)
    return True
