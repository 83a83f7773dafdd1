# SPDX-License-Identifier: BSD-3-Clause
# Deliberate mistakes, each of which a campaign must catch, or a unit test. For
# sourcing by ./check.
stage mutations touched '^. (base|lnet|lnd|rpc|sim|tests/(sim|unit))/.*\.(c|h|def)$'

# All of them take seconds; a mistake may have one of them go on for ever.
run_unit_mutants() { # [ARGUMENT...]
	nice timeout -k 10 120 "$BUILD/release/tests/unit/mutants" "$@"
}

# Deliberate mistakes, each of which the campaign must catch, or a unit test.
run_mutation() { # NAME
	local program=mutants

	[[ $1 != rpc_* ]] || program=rpc_mutants
	[[ $1 != rails_* ]] || program=rails_mutants
	[[ $1 != routes_* ]] || program=routes_mutants
	[[ $1 != fair_* ]] || program=fair_mutants
	if [[ $1 = unit_* ]]; then
		! ULNET_MUTATION=$1 run_unit_mutants --fail-fast
		return
	fi
	nice timeout -k 10 1800 "$BUILD/release/tests/sim/$program" \
		--mutate "$1"
}

stage_mutations() {
	release_build mutants || return 0
	step "without any" run_unit_mutants || return 0
	at_once "caught:" run_mutation $(sed -n 's/^MUTATION(\([a-z_]*\),.*/\1/p' \
		"$SRC/base/mutation.def")
}
