# SPDX-License-Identifier: BSD-3-Clause
# Programs with threads under the thread sanitizer; with --long the LNDs' tests, too.
# For sourcing by ./check.
stage tsan always

stage_tsan() {
	local target=check-thread

	[ $long = no ] || target=check-thread-lnd
	configure tsan gcc --enable-sanitizer=tsan --disable-werror || return 0
	step "build" tree_make tsan -k thread-programs || return 0
	export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
	# Its shadow memory collides with addresses that are too random.
	! setarch -R true 2>/dev/null || export RUN_UNDER="setarch -R"
	suite tsan $target
	unset TSAN_OPTIONS RUN_UNDER
}
