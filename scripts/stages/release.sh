# SPDX-License-Identifier: BSD-3-Clause
# Runs the programs of the build that is released as their users see them, on 127.0.0.x
# and in network namespaces, and simulations that count time, memory and shares. Checks
# that calls point down in the objects of that build. With --long runs all tests. For
# sourcing by ./check.
stage release always

measure() { # PROGRAM
	timeout -k 10 1800 "$BUILD/release/$1"
}

stage_release() {
	local target=check-programs

	if [ $long = yes ]; then
		target=check
		export ULNET_SURVIVE=2 ULNET_RAILS=5
	fi
	release_build program-tests || return 0
	step "calls point down" \
		"$SRC/scripts/layering_symbols.sh" "$SRC" "$BUILD/release" || true
	suite release $target
	at_once "simulation" measure $(tree_make release -s \
		--no-print-directory print-sim-measures)
}
