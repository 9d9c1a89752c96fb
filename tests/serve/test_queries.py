"""The queries that a server has compiled: each is compiled once, however many ask for it, and few are kept."""

import threading

import tacit
from tacit.serve.queries import Queries

NET = tacit.examples.abc()


def test_what_is_being_compiled_is_not_compiled_again_while_others_come_and_go():
    queries, begun, go, made = Queries(NET, 1), threading.Event(), threading.Event(), []

    def make(name, wait=False):
        made.append(name)
        if wait:
            begun.set()
            go.wait(60)
        return name

    first = threading.Thread(target=lambda: queries._once("slow", lambda: make("first", wait=True)))
    first.start()
    begun.wait(60)
    for name in ("b", "c", "d"):
        queries._once(name, lambda name=name: make(name))
    second = threading.Thread(target=lambda: queries._once("slow", lambda: make("second")))
    second.start()
    second.join(0.1)  # where nothing holds it back, it is done by now
    go.set()
    first.join()
    second.join()
    assert made == ["first", "b", "c", "d"]
    assert not queries._locks
