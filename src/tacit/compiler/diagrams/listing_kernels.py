"""From numbers, each the sum or product of two others, to a short list of instructions."""

# What is built into kernels: see `jit`.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.base.jit import jit
from tacit.compiler.diagrams.diagram_kernels import PRODUCT, SUM, in_place


class Terms(NamedTuple):
    """Pairs of numbers: the terms of all instructions, and the linear ones of the instruction at hand."""

    pairs: Any
    linear: Any
    stack: Any  # scratch


@jit()
def listing(numbers, static, roots, rows):  # type: ignore[no-untyped-def]
    """The instructions that compute the numbers in `roots`, which are not leaves, from all `numbers`.

    Leaves are the numbers for which `static` holds and all that are neither sum nor product. A sum takes in the sums
    and products that only it uses. With `rows`, products with a static number are linear terms; an instruction then
    has terms of one kind only: the products are added up first, as a number beyond all others. Returns the number that
    each instruction makes, the end of its terms, whether it is linear, and the terms, as pairs of numbers; number 1
    is 1. The last result is how many numbers there are beyond all others.
    """
    top = 0
    for root in roots:
        top = max(top, root + 1)
    uses, most = _count_uses(numbers, static, roots, top)
    pairs = np.empty((2, 2 * most, 2), dtype=np.int64)
    terms = Terms(pairs[0], pairs[1], np.empty(most + 2, dtype=np.int64))
    wanted = _mark_wanted(numbers, static, uses, roots, top, rows, terms.stack)
    return _emit(numbers, static, uses, wanted[:top], rows, terms)


@in_place
def _inner(numbers, static, i):  # type: ignore[no-untyped-def]
    """Whether a number is a sum or product, and no leaf."""
    return not static[i] and (numbers.kind[i] == SUM or numbers.kind[i] == PRODUCT)


@in_place
def _is_linear(numbers, static, i):  # type: ignore[no-untyped-def]
    """Whether a number is a product with a static one."""
    return numbers.kind[i] == PRODUCT and (static[numbers.left[i]] or static[numbers.right[i]])


@jit()
def _count_uses(numbers, static, roots, top):  # type: ignore[no-untyped-def]
    """How often each number is used, and a bound of the number of terms; roots are never taken in."""
    uses = np.zeros(len(numbers.kind), dtype=np.int32)
    for root in roots:
        uses[root] += 2
    most = 0
    for i in range(top - 1, -1, -1):
        if uses[i] and _inner(numbers, static, i):
            most += 2
            uses[numbers.left[i]] += 1
            uses[numbers.right[i]] += 1
    return uses, most


@jit()
def _mark_wanted(numbers, static, uses, roots, top, rows, stack):  # type: ignore[no-untyped-def]
    """The numbers that have an instruction: a product with a static number is a term of every sum that uses it."""
    wanted = np.zeros(len(numbers.kind), dtype=np.bool_)
    wanted[roots] = True
    for i in range(top - 1, -1, -1):
        depth = 0
        if wanted[i] and _inner(numbers, static, i):
            stack[0], depth = i, 1
        while depth:
            depth -= 1
            at = stack[depth]
            for child in (numbers.left[at], numbers.right[at]):
                if not _inner(numbers, static, child):
                    continue
                if numbers.kind[at] == SUM and uses[child] == 1:
                    stack[depth] = child
                    depth += 1
                elif numbers.kind[at] == SUM and rows and _is_linear(numbers, static, child):
                    a, b = numbers.left[child], numbers.right[child]
                    wanted[b if static[a] else a] = True
                else:
                    wanted[child] = True
    return wanted


@jit()
def _emit(numbers, static, uses, wanted, rows, terms):  # type: ignore[no-untyped-def]
    """An instruction for each wanted number, or two: its products, then a linear one."""
    first, most = len(numbers.kind), len(terms.stack)  # the first number beyond all others
    made, ends = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    linear = np.empty(most, dtype=np.bool_)
    instructions = used = parts = 0
    for i in range(len(wanted)):
        if not wanted[i] or not _inner(numbers, static, i):
            continue
        start = used
        used, linears = _write_terms(numbers, static, uses, i, rows, terms, used)
        if linears and used > start:
            made[instructions], ends[instructions], linear[instructions] = first + parts, used, False
            terms.linear[linears, 0], terms.linear[linears, 1] = 1, first + parts
            linears += 1
            parts += 1
            instructions += 1
        for t in range(linears):
            terms.pairs[used, 0], terms.pairs[used, 1] = terms.linear[t, 0], terms.linear[t, 1]
            used += 1
        made[instructions], ends[instructions], linear[instructions] = i, used, linears > 0
        instructions += 1
    return made[:instructions], ends[:instructions], linear[:instructions], terms.pairs[:used], parts


@in_place
def _write_terms(numbers, static, uses, i, rows, terms, used):  # type: ignore[no-untyped-def]
    """The products of a number, from `used` on, and its linear terms; returns where both end."""
    stack, depth, linears = terms.stack, 1, 0
    stack[0] = i
    while depth:
        depth -= 1
        at = stack[depth]
        if at >= 0 and numbers.kind[at] == SUM:
            for child in (numbers.right[at], numbers.left[at]):
                taken_in = uses[child] == 1 or (rows and _is_linear(numbers, static, child))
                stack[depth] = child if taken_in and _inner(numbers, static, child) else -1 - child
                depth += 1
            continue
        if at < 0:  # a number as it is
            a, b = np.int64(1), -1 - at
        else:
            a, b = np.int64(numbers.left[at]), np.int64(numbers.right[at])
        if rows and (at < 0 or static[a] or static[b]):
            if static[b]:
                a, b = b, a
            terms.linear[linears, 0], terms.linear[linears, 1] = a, b
            linears += 1
        else:
            terms.pairs[used, 0], terms.pairs[used, 1] = a, b
            used += 1
    return used, linears


@jit()
def reached(numbers, symbols):  # type: ignore[no-untyped-def]
    """Which numbers depend on some symbols."""
    depends = symbols.copy()
    for i in range(len(depends)):
        if numbers.kind[i] == SUM or numbers.kind[i] == PRODUCT:
            depends[i] = depends[numbers.left[i]] or depends[numbers.right[i]]
    return depends
