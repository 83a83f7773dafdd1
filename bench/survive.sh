# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about harm: what calls that may be repeated notice of it when their
# connections are cut, their server is killed, stops, or is asked for too much, and when
# messages are lost; and what it costs to keep slow calls alive. For sourcing; uses
# row(), $BUILD, $bin and the programs in $tools and $proxy.
#
# Each harm is done to calls of 64 bytes, verified, 64 of them under way, between two
# processes, through a proxy; right before and afterwards the same calls are made
# without it. Table: $BUILD/bench-survive.md.

survive_quiet=4 # s, of calls without harm, before each and afterwards
survive_at=2986 survive_behind=2987
survive_host=127.0.22.1
survive_slow=10000 # calls
survive_loss=200000 # calls
survive_cut=5000000 # calls

# ---- processes ----

survive_serve() {
	local fifo=$survive_dir/ready

	rm -f "$fifo" "$survive_dir/socket" && mkfifo "$fifo"
	"$tools/rpcserve" --net "tcp($survive_host)" --port $survive_behind \
		--accept all --service echo --workers 1 --log err \
		--socket "$survive_dir/socket" >"$fifo" &
	survive_server=$!
	read -r _ <"$fifo"
}

# survive_proxy COMMAND: it does that.
survive_proxy() {
	echo "$1" >&"$survive_to"
	read -r -t 60 _ <&"$survive_from"
}

survive_ctl() {
	"$tools/lnetctl" --socket "$survive_dir/socket" "$@"
}

# survive_ping OPTION...: what rpcping says is in $survive_dir/out.
survive_ping() {
	"$tools/rpcping" --net 'tcp(127.0.22.2)' --port $survive_at --explain \
		--inflight 64 --verify --deadline 10 --log err "$@" \
		$survive_host@tcp >"$survive_dir/out" || true
}

# survive_value SED-EXPRESSION: what it finds in that, or 0
survive_value() {
	local v

	v=$(sed -n "s/.*$1.*/\1/p" "$survive_dir/out" | head -n 1)
	echo "${v:-0}"
}

# Requests that the service has executed since the last "rpc reset".
survive_executions() {
	survive_ctl rpc show | awk '
		/^    requests:/ { here = 1 }
		/^    refused:/ { here = 0 }
		here && $1 == "ok:" { n += $2 }
		END { print n + 0 }'
}

# ---- harm, while calls are made for $survive_s seconds ----

survive_nothing() {
	sleep "$survive_s"
}

survive_cuts() { # INTERVAL
	local end=$((SECONDS + survive_s))

	while ((SECONDS < end)); do
		sleep "$1"
		survive_proxy cut
	done
}

survive_stop() {
	sleep 4
	kill -STOP "$survive_server"
	sleep 5
	kill -CONT "$survive_server"
}

survive_kill() {
	sleep 4
	kill -KILL "$survive_server"
	wait "$survive_server" 2>/dev/null || true
	sleep 1
	survive_serve
}

# ---- the table ----

survive_md() { # CELL...
	local IFS='|'

	echo "|$*|" | sed 's/|/ | /g; s/^ //; s/ $//'
}

# survive_ratio DIGITS A B
survive_ratio() {
	awk -v a="$2" -v b="$3" -v n="$1" 'BEGIN { printf "%.*f", n, b ? a / b : 0 }'
}

# survive_note TEXT QUIET-RATE EXECUTIONS: the row of what is in $survive_dir/out.
# EXECUTIONS: -: not known.
survive_note() {
	local calls lost rate share executions=$3

	calls=$(survive_value 'calls \([0-9]*\), lost')
	lost=$(survive_value ', lost \([0-9]*\)')
	rate=$(survive_value ' \([0-9.]*\) calls\/s')
	share=$(survive_ratio 2 "$rate" "$2")
	[ "$executions" = - ] ||
		executions=$(survive_ratio 4 "$executions" $((calls - lost)))
	survive_md "$1" "$calls" "$lost" "$(survive_value ', resent \([0-9]*\)')" \
		"$(survive_value 'queries_sent \([0-9]*\)')" \
		"$(survive_value 'p50 \([0-9.]*\)')" \
		"$(survive_value 'p99 \([0-9.]*\)')" \
		"$(survive_value 'p99\.9 \([0-9.]*\)')" \
		"$rate" "$share" "$executions" >>"$BUILD/bench-survive.md"
	row "$1: calls lost" calls 0 "$lost" "$lost" "$lost"
	row "$1: rate, of the undisturbed one" ratio "" "$share" "$share" "$share"
}

# survive TEXT SECONDS QUIET-OPTIONS OPTIONS HARM...: what a server that is not the
# one of before afterwards has executed is not known.
survive() {
	local text=$1 survive_s=$2 quiet=$3 options=$4 server=$survive_server
	local before after executions=- ping

	shift 4
	before=$(survive_quiet_rate "$quiet")
	survive_ctl rpc reset
	# shellcheck disable=SC2086 # options
	survive_ping --time "$survive_s" $options &
	ping=$!
	"$@"
	wait $ping
	[ "$server" != "$survive_server" ] || executions=$(survive_executions)
	mv "$survive_dir/out" "$survive_dir/harmed"
	after=$(survive_quiet_rate "$quiet")
	mv "$survive_dir/harmed" "$survive_dir/out"
	survive_note "$text" "$(awk "BEGIN { print ($before + $after) / 2 }")" \
		"$executions"
}

# survive_quiet_rate OPTIONS: calls a second
survive_quiet_rate() {
	# shellcheck disable=SC2086 # options
	survive_ping --time $survive_quiet $1
	survive_value ' \([0-9.]*\) calls\/s'
}

# survive_lossy TEXT SEMANTICS LATENCY [CALLS LOSS CUT]: of the simulator, on virtual
# time
survive_lossy() {
	local n=${4:-$survive_loss} values quiet rate v cells=()

	quiet=$("$bin/lossy" "$2" "$n" 0 "$3" 0 | sed -n 's/^rate //p')
	values=$("$bin/lossy" "$2" "$n" "${5:-1}" "$3" "${6:-0}")
	for v in calls lost resent queries p50 p99 p999 rate; do
		cells+=("$(sed -n "s/^$v //p" <<<"$values")")
	done
	rate=${cells[-1]}
	v=$(sed -n 's/^executions //p' <<<"$values")
	cells+=("$(survive_ratio 2 "$rate" "$quiet")"
		"$(survive_ratio 4 "$v" $((cells[0] - cells[1])))")
	survive_md "$1" "${cells[@]}" >>"$BUILD/bench-survive.md"
	row "$1: calls lost" calls 0 "${cells[1]}" "${cells[1]}" "${cells[1]}"
}

survive_slow_calls() {
	local values key column unit aim v

	values=$("$bin/slow" $survive_slow 20)
	while IFS='|' read -r key column unit aim; do
		v=$(sed -n "s/^$key //p" <<<"$values")
		row "$survive_slow slow calls: $column" "$unit" "$aim" "$v" "$v" "$v"
	done <<-'END'
	server|processor time of the server|% of a core|< 2
	client|processor time of the clients|% of a core|
	extensions|early replies to calls in 20 s|calls|
	queries|queries|calls|0
	END
}

survive_measure() {
	local survive_dir survive_server survive_pid survive_to survive_from
	local once='--semantics at-most-once'
	local worker='--method EchoWorker --delay 20ms'

	survive_dir=$(mktemp -d)
	survive_serve
	coproc survive_coproc {
		exec "$proxy" $survive_host $survive_at $survive_host \
			$survive_behind
	}
	exec {survive_from}<&"${survive_coproc[0]}"
	exec {survive_to}>&"${survive_coproc[1]}"
	survive_pid=$!
	read -r -t 60 _ <&"$survive_from"
	survive_md what calls lost 'sent again' queries 'p50, us' 'p99, us' \
		'p99.9, us' 'calls/s' 'of undisturbed' 'executions per answer' \
		>"$BUILD/bench-survive.md"
	survive_md --- --- --- --- --- --- --- --- --- --- --- \
		>>"$BUILD/bench-survive.md"
	survive nothing 10 '' '' survive_nothing
	survive 'a cut each second' 20 '' '' survive_cuts 1
	survive 'a cut each 200 ms' 20 '' '' survive_cuts 0.2
	survive 'a cut each 200 ms, at most once' 20 "$once" "$once" \
		survive_cuts 0.2
	survive 'server stopped for 5 s' 20 '' '' survive_stop
	survive 'server killed, back after 1 s' 20 '' '' survive_kill
	survive 'ten times overload' 20 "$worker" \
		"$worker --rate 500 --inflight 4096 --deadline 1" survive_nothing
	survive_lossy '1 % of messages lost, 50 us away' idempotent 50
	survive_lossy '1 % of messages lost, 50 us away, at most once' once 50
	survive_lossy '1 % of messages lost, 5 ms away' idempotent 5000
	survive_lossy 'a cut each 200 ms, 50 us away' idempotent 50 \
		$survive_cut 0 200
	survive_lossy 'a cut each 200 ms, 50 us away, at most once' once 50 \
		$survive_cut 0 200
	kill "$survive_server"
	wait "$survive_server" || true
	kill "$survive_pid"
	wait "$survive_pid" || true
	exec {survive_to}>&- {survive_from}<&-
	rm -rf "$survive_dir"
	echo "bench: $BUILD/bench-survive.md"
	survive_slow_calls
}
