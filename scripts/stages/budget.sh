# SPDX-License-Identifier: BSD-3-Clause
# Compares the instructions that a call takes with the budget; with --long also builds
# with link-time optimisation, and calls. For sourcing by ./check.
stage budget always

lto_build() {
	CONFIG_CACHE=$BUILD/config.cache.gcc \
		tree_configure lto CC=gcc --enable-lto --enable-werror &&
		tree_make lto bench/budget
}

stage_budget() {
	local log=$logs/budget.log status=0

	release_build bench/budget bench/core || return 0
	"$SRC/bench/budget.sh" "$BUILD/release/bench/budget" \
		"$SRC/bench/budget.txt" >"$log" 2>&1 </dev/null || status=$?
	case $status in
	0) pass "instructions of a call" ;;
	77) skip "instructions of a call" "$(tail -n 1 "$log")" ;;
	*) fail "instructions of a call" 1 "$log" ;;
	esac
	[ $long = yes ] || return 0
	! step "build with --enable-lto" lto_build ||
		step "calls with that" "$BUILD/lto/bench/budget" 64 6400 || true
}
