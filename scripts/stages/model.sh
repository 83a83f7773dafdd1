# SPDX-License-Identifier: BSD-3-Clause
# Looks at all states of the protocol of calls that run at most once, with spin. For
# sourcing by ./check.
stage model touched '^. (tests/model/|rpc/(client|server|wire)/)'

stage_model() {
	local status=0 script=$SRC/tests/model/exactly_once.sh flags=

	[ $long = no ] || flags=--long
	bash "$script" $flags "$BUILD/model" >"$logs/model.log" 2>&1 </dev/null ||
		status=$?
	if [ $status = 0 ]; then
		pass "exactly_once" "$(wc -l <"$logs/model.log")"
	else
		fail "exactly_once" 1 "$logs/model.log"
	fi
}
