# SPDX-License-Identifier: BSD-3-Clause
# Looks at all states of the protocols of calls that run at most once, of wake-ups over
# shared memory, of loops that are borrowed, and of threads that poll and sleep, with
# spin. For sourcing by ./check.
stage model touched '^. (tests/model/|rpc/((client|server|wire)/|rpc\.)|lnd/shmlnd/|base/(caretaker|env_ev)\.)'

# model_check NAME
model_check() {
	local status=0 flags=

	[ $long = no ] || flags=--long
	bash "$SRC/tests/model/$1.sh" $flags "$BUILD/model/$1" \
		>"$logs/model_$1.log" 2>&1 </dev/null || status=$?
	if [ $status = 0 ]; then
		pass "$1" "$(wc -l <"$logs/model_$1.log")"
	else
		fail "$1" 1 "$logs/model_$1.log"
	fi
}

stage_model() {
	model_check exactly_once
	model_check wakeup
	model_check caretaker
	model_check wait
}
