# SPDX-License-Identifier: BSD-3-Clause
# What a call may cost, in instructions; with --long, that it can be built with
# link-time optimisation, too. For sourcing by ./check.
stage budget always

# Excludes -Werror.
lto_build() {
	CONFIG_CACHE=$BUILD/config.cache.gcc \
		tree_configure lto CC=gcc --enable-lto &&
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
