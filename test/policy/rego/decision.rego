# Compiled into decision.wasm.gz with
#   opa build -t wasm -e countersign/decision decision.rego && tar -xzOf bundle.tar.gz /policy.wasm | gzip -9 > decision.wasm.gz
package countersign

import rego.v1

default decision := {"verdict": "deny", "policies": ["default"], "reasons": ["no rule permits it"]}

decision := {"verdict": "allow", "policies": ["low-risk"], "reasons": ["the write puts little at risk"]} if {
	input.action.risk == "low"
	not odd
}

decision := {
	"verdict": "needs_approval",
	"policies": ["ask"],
	"reasons": [sprintf("%s asks people", [input.action.tool])],
	"requirement": {"tier": "medium", "quorum": 2, "groups": ["sre"]},
} if {
	input.action.risk == "medium"
}

# What a careless author may answer.
odd if input.action.target == "odd:answer"

decision := {"verdict": "allow", "policies": [], "reasons": [], "because": "I say so"} if odd

decision := {"verdict": "needs_approval", "policies": [], "reasons": []} if input.action.target == "no:requirement"

# Two answers at once are a conflict, which aborts.
decision := {"verdict": "allow", "policies": ["twice"], "reasons": []} if input.action.target == "two:answers"

decision := {"verdict": "deny", "policies": ["twice"], "reasons": []} if input.action.target == "two:answers"

# Far beyond the memory a policy may use.
decision := {"verdict": "allow", "policies": [n], "reasons": []} if {
	input.action.target == "too:much"
	n := count(numbers.range(1, 10000000))
}
