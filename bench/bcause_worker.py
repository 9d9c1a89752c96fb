"""Counterfactual queries answered by bcause, one by one: a model and cases come in as JSON, answers go out.

It runs in an environment of its own, where bcause 0.0.2 is installed and tacit is not.
"""

import json
import math
import sys
import time

import networkx
from bcause.factors import MultinomialFactor
from bcause.inference.causal.elimination import CausalVariableElimination
from bcause.models.cmodel import StructuralCausalModel


def main() -> None:
    """Answer, and say how long that took."""
    asked = json.load(sys.stdin)
    graph, factors = networkx.DiGraph(), {}
    for name, parents, table in asked["nodes"]:
        graph.add_node(name)
        graph.add_edges_from((parent, name) for parent in parents)
        domain = {variable: [0, 1] for variable in (*parents, name)}
        factors[name] = MultinomialFactor(domain, table, left_vars=[name])
    inference = CausalVariableElimination(StructuralCausalModel(graph, factors))
    answers, begin = [], time.perf_counter()
    for case in asked["cases"]:
        target = case["target"]
        answer = inference.counterfactual_query(target, do=case["do"], evidence=case["evidence"])
        values = [float(answer.get_value(**{f"{target}_1": state})) for state in (0, 1)]
        answers.append(None if any(map(math.isnan, values)) else values)
    print(json.dumps({"answers": answers, "seconds": time.perf_counter() - begin}))


if __name__ == "__main__":
    main()
