# SPDX-License-Identifier: BSD-3-Clause
# Sanitizers look for accesses to memory that are not allowed, and for what C does not
# define: in units, LNDs, whole clusters in virtual time, and what fuzzers start from.
# For sourcing by ./check.
stage asan always

# The tests' own code is looked at for bad accesses only, by calls instead of code in
# place: that takes half the time to compile.
asan_tests_cflags="-O0 -fno-sanitize=undefined"
asan_tests_cflags+=" --param asan-instrumentation-with-call-threshold=0"

asan_campaign() { # NAME
	timeout -k 10 1800 "$BUILD/asan/$1" --seeds 10
}

stage_asan() {
	local target=check-memory

	# With --long, all tests.
	[ $long = no ] || target=check
	# gcc's warnings about instrumented code are often wrong.
	configure asan gcc --enable-sanitizer=asan --disable-werror \
		TESTS_CFLAGS="$asan_tests_cflags" || return 0
	step "build" tree_make asan -k memory-programs || return 0
	export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
	export UBSAN_OPTIONS=print_stacktrace=1
	suite asan $target
	at_once "10 seeds of" asan_campaign $(tree_make asan -s \
		--no-print-directory print-sim-campaigns)
	unset ASAN_OPTIONS UBSAN_OPTIONS
}
