# SPDX-License-Identifier: BSD-3-Clause
# The campaigns in their long form. (A slice of each is in stages asan and release.) For
# sourcing by ./check.
stage sim long

run_campaign() { # PROGRAM
	timeout -k 10 7200 "$BUILD/release/$1" --long
}

stage_sim() {
	release_build sim-programs || return 0
	at_once "campaign" run_campaign $(tree_make release -s \
		--no-print-directory print-sim-campaigns print-sim-measures print-soak)
}
