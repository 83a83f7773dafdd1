# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about TCP on the loopback interface. For sourcing; uses
# row(), instructions(), $runs, $BUILD and the programs in $bin.
#
# Two processes, the server on the first core and 127.0.0.2, the client on the last
# one and 127.0.0.1. Each round runs every line of the list below once, one after
# the other, so that a bound and what is compared with it are measured within
# seconds of each other; ratios are taken within a round, and then their median.
# The raw round trip on two connections shows what it would cost if messages of
# 4 KiB went by the bulk connections.

tcp_ms=300 # of each measurement, after a tenth of a second of warm-up

# Rows in shared memory are between the same two cores, for comparison.
#
# Each line: program and its arguments (for raw_tcp WHAT MODE SIZE DEPTH CHUNK,
# for tcp and shm [shared] [TUNABLE=VALUE] WHAT MODE SIZE DEPTH CREDITS, for wait
# NET RUN) | what | unit | what one of the program's numbers is in that unit | aim
# | raw line that bounds it | aim of the ratio to that
tcp_list() {
	cat <<-'END'
	raw_tcp echo poll 64 1 0|raw: 64 B there and back, poll|us|1|||
	tcp echo poll 64 1 4096|PUT+PUT 64 B, poll|us|1||raw: 64 B there and back, poll|<= 1.2
	tcp rpc poll 64 1 4096|as an RPC 64 B, poll|us|1||raw: 64 B there and back, poll|<= 1.2
	raw_tcp echo epoll 64 1 0|raw: 64 B there and back, epoll|us|1|||
	tcp rpc block 64 1 4096|as an RPC 64 B, block|us|1||raw: 64 B there and back, epoll|<= 1.2
	tcp echo block 64 1 4096|PUT+PUT 64 B, block|us|1||raw: 64 B there and back, epoll|<= 1.2
	tcp echo threads 64 1 4096|PUT+PUT 64 B, plain thread|us|1||raw: 64 B there and back, epoll|
	raw_tcp echo block 64 1 0|raw: 64 B there and back, recv() waits|us|1|||
	raw_shm poll 64|raw: 64 B there and back in shared memory, poll|us|1|||
	shm echo poll 64 1 4096|PUT+PUT 64 B in shared memory, poll|us|1||raw: 64 B there and back in shared memory, poll|
	shm rpc poll 64 1 4096|as an RPC 64 B in shared memory, poll|us|1||raw: 64 B there and back in shared memory, poll|
	raw_shm epoll 64|raw: 64 B there and back, an eventfd in epoll|us|1|||
	raw_shm eventfd 64|raw: 64 B there and back, read() of an eventfd waits|us|1|||
	raw_shm socket 64|raw: 64 B there and back, recv() of a UNIX socket waits|us|1|||
	raw_shm futex 64|raw: 64 B there and back, futex() waits|us|1|||
	shm echo block 64 1 4096|PUT+PUT 64 B in shared memory, block|us|1||raw: 64 B there and back, an eventfd in epoll|
	wait shm shared|a thread waits for its call, 64 B in shared memory, shared|us|1||raw: 64 B there and back, an eventfd in epoll|<= 1.05
	wait shm threads|a thread waits for its call, 64 B in shared memory, threads|us|1||raw: 64 B there and back, an eventfd in epoll|
	wait shm poll|a thread waits for its call, 64 B in shared memory, poll|us|1||raw: 64 B there and back, an eventfd in epoll|
	wait tcp shared|a thread waits for its call, 64 B over TCP, shared|us|1||raw: 64 B there and back, epoll|
	wait tcp threads|a thread waits for its call, 64 B over TCP, threads|us|1||raw: 64 B there and back, epoll|
	wait tcp poll|a thread waits for its call, 64 B over TCP, poll|us|1||raw: 64 B there and back, epoll|
	raw_tcp echo poll 4096 1 0|raw: 4 KiB there and back, poll|us|1|||
	raw_tcp echo2 poll 4096 1 0|raw: 4 KiB there and back, two connections, poll|us|1|||
	tcp echo poll 4096 1 4096|PUT+PUT 4 KiB, poll|us|1||raw: 4 KiB there and back, poll|<= 1.2
	raw_tcp echo epoll 4096 1 0|raw: 4 KiB there and back, epoll|us|1|||
	raw_tcp echo2 epoll 4096 1 0|raw: 4 KiB there and back, two connections, epoll|us|1|||
	tcp echo block 4096 1 4096|PUT+PUT 4 KiB, block|us|1||raw: 4 KiB there and back, epoll|<= 1.2
	tcp echo lo 64 1 0|PUT+PUT 64 B on 0@lo, one thread|us|1|||
	raw_tcp write poll 65536 64 64|raw: 64 B one way, a send() each|1/s|0.015625|||
	raw_tcp write poll 65536 64 0|raw: 64 B one way, 64 KiB a send()|1/s|0.015625|||
	tcp flood poll 64 1024 4096|PUT 64 B one way, 1024 on the way, poll|1/s|1|>= 1500000|raw: 64 B one way, a send() each|
	tcp flood poll 64 256 4096|PUT 64 B one way, 256 on the way, poll|1/s|1|||
	tcp flood poll 64 4096 4096|PUT 64 B one way, 4096 on the way, poll|1/s|1|||
	tcp flood poll 64 1024 0|PUT 64 B one way, default credits, poll|1/s|1|||
	tcp flood block 64 1024 4096|PUT 64 B one way, 1024 on the way, block|1/s|1|||
	raw_tcp write poll 65536 64 4096|raw: 4 KiB one way, a send() each|1/s|0.000244140625|||
	raw_tcp write poll 65536 64 0|raw: 4 KiB one way, 64 KiB a send()|1/s|0.000244140625|||
	tcp flood poll 4096 256 4096|PUT 4 KiB one way, 256 on the way, poll|1/s|1||raw: 4 KiB one way, 64 KiB a send()|
	tcp flood block 4096 256 4096|PUT 4 KiB one way, 256 on the way, block|1/s|1|||
	tcp flood lo 64 1024 0|PUT 64 B one way on 0@lo, one thread|1/s|1|||
	END
	local mode raw_mode depth size
	for mode in poll block; do
		raw_mode=${mode/block/epoll}
		for depth in 1 16 64 256; do
			cat <<-END
			raw_tcp batch $raw_mode 64 $depth 0|raw: 64 B there and back, $depth a send(), $raw_mode|1/s|1|||
			tcp put $mode 64 $depth 4096|PUT+ACK 64 B, depth $depth, $mode|1/s|1||raw: 64 B there and back, $depth a send(), $raw_mode|
			tcp calls $mode 64 $depth 4096|as RPCs 64 B, depth $depth, $mode|1/s|1||raw: 64 B there and back, $depth a send(), $raw_mode|
			END
		done
	done
	echo "tcp put threads 64 64 4096|PUT+ACK 64 B, depth 64, plain thread|1/s|1|||"
	for mode in poll block; do
		raw_mode=${mode/block/epoll}
		for depth in 1 4 16; do
			cat <<-END
			raw_tcp write $raw_mode 1048576 $depth 0|raw: 1 MiB out, depth $depth, $raw_mode|GB/s|1e-9|||
			tcp put $mode 1048576 $depth 4096|PUT 1 MiB, depth $depth, $mode|GB/s|1.048576e-3||raw: 1 MiB out, depth $depth, $raw_mode|>= 0.85
			raw_tcp read $raw_mode 1048576 $depth 0|raw: 1 MiB in, depth $depth, $raw_mode|GB/s|1e-9|||
			tcp get $mode 1048576 $depth 4096|GET 1 MiB, depth $depth, $mode|GB/s|1.048576e-3||raw: 1 MiB in, depth $depth, $raw_mode|>= 0.85
			END
		done
	done
	echo "tcp put threads 1048576 4 4096|PUT 1 MiB, depth 4, plain thread|GB/s|1.048576e-3|||"
	for size in 256 1024; do
		cat <<-END
		raw_shm copy $((size * 1024))|raw: $size KiB out of the other process|GB/s|$((size * 1024))e-9|||
		END
		for mode in poll block; do
			for depth in 1 4; do
				cat <<-END
				shm put $mode $((size * 1024)) $depth 4096|PUT $size KiB in shared memory, copied once, depth $depth, $mode|GB/s|$((size * 1024))e-9||raw: $size KiB out of the other process|>= 0.95
				shm shared put $mode $((size * 1024)) $depth 4096|PUT $size KiB in shared memory, of lnet_mem_alloc(), depth $depth, $mode|GB/s|$((size * 1024))e-9||raw: $size KiB out of the other process|>= 0.95
				shm shared map_max=0 put $mode $((size * 1024)) $depth 4096|PUT $size KiB in shared memory, of lnet_mem_alloc(), not mapped, depth $depth, $mode|GB/s|$((size * 1024))e-9||raw: $size KiB out of the other process|
				shm copy_min=0 put $mode $((size * 1024)) $depth 4096|PUT $size KiB in shared memory, by the ring, depth $depth, $mode|GB/s|$((size * 1024))e-9||raw: $size KiB out of the other process|
				END
			done
		done
	done
}

# What tcp_peers prints, for so many peers.
tcp_peers=1000
tcp_peers_list() {
	cat <<-END
	setup-ms|set up $tcp_peers peers, a connection each|ms|raw: connect and accept $tcp_peers
	connections|connections of a peer||
	server-allocated|memory of an idle peer, malloc'ed|bytes|
	server-resident|memory of an idle peer, resident|bytes|
	kernel-buffers|memory of an idle peer, kernel's buffers, both ends|bytes|
	END
}

# Ticks of processor time: used by all or stolen by the host, and by what this
# shell has run. Sets all and ours.
ticks() {
	local user nice system steal fields

	read -r _ user nice system _ _ _ _ steal _ </proc/stat
	all=$((user + nice + system + steal))
	read -r -a fields </proc/$BASHPID/stat
	ours=$((fields[15] + fields[16]))
}

# undisturbed COMMAND...: sets number to what it prints. On a shared machine it is
# run again, once, if others used more than 15 % of a core meanwhile, and the run
# that they disturbed less counts.
undisturbed() {
	local all ours all_before ours_before begin others least='' output

	for _ in 1 2; do
		ticks
		all_before=$all ours_before=$ours begin=${EPOCHREALTIME/./}
		output=$("$@") || {
			echo "bench/run: $* failed" >&2
			return 1
		}
		ticks
		# Per mille of a core, at 100 ticks a second.
		others=$(((all - all_before - ours + ours_before) * 10000000 /
			(${EPOCHREALTIME/./} - begin)))
		if [ -z "$least" ] || [ "$others" -lt "$least" ]; then
			least=$others
			number=$output
		fi
		[ "$least" -gt 150 ] || return 0
	done
	echo >>"$values.disturbed"
}

# One round: a line "what|number" for each measurement.
tcp_round() {
	local program what unit scale rest name number

	while IFS='|' read -r program what unit scale rest; do
		# shellcheck disable=SC2086 # words on purpose
		undisturbed timeout 60 "$bin"/$program $tcp_ms
		awk -v n="$number" -v s="$scale" -v what="$what" \
			'BEGIN { printf "%s|%.9g\n", what, n * s }'
	done < <(tcp_list)
	what="raw: connect and accept $tcp_peers"
	undisturbed "$bin/raw_tcp" connect poll $tcp_peers 1 0 1
	echo "$what|$number"
	undisturbed timeout 120 "$bin/tcp_peers" $tcp_peers
	while read -r name number; do
		what=$(tcp_peers_list | awk -F'|' -v n="$name" \
			'$1 == n { print $2 }')
		[ -z "$what" ] || echo "$what|$number"
	done <<<"$number"
}

# medians WHAT [BOUND]: "median min max" of what the rounds gave; with a BOUND of
# its ratio to that, round by round. Nothing if there is none.
medians() {
	local what=$1 bound=${2:-}

	awk -F'|' -v what="$what" -v bound="$bound" '
		$1 == what { a[++n] = $2 }
		$1 == bound { b[++m] = $2 }
		END {
			for (i = 1; i <= n; i++)
				print bound != "" ? a[i] / b[i] : a[i]
		}' "$values" | sort -g | awk '
		function text(x) {
			if (x >= 1000)
				return sprintf("%.0f", x)
			return sprintf(x >= 10 ? "%.1f" : "%.3f", x)
		}
		{ v[NR] = $1 }
		END {
			if (NR)
				print text(v[int((NR + 1) / 2)]), text(v[1]), \
					text(v[NR])
		}'
}

# tcp_row WHAT UNIT AIM [BOUND [TO]]: a row of medians(), where the BOUND is called
# TO.
tcp_row() {
	local what=$1 unit=$2 aim=$3 bound=${4:-} to=${5:-to raw} v

	v=$(medians "$what" "$bound")
	[ -z "$bound" ] || what="  $to: $what"
	# shellcheck disable=SC2086 # three numbers
	row "$what" "$unit" "$aim" $v
}

tcp_rows() {
	local program what unit scale aim bound ratio_aim name

	while IFS='|' read -r program what unit scale aim bound ratio_aim; do
		tcp_row "$what" "$unit" "$aim"
		[ -z "$bound" ] || tcp_row "$what" x "$ratio_aim" "$bound"
	done < <(tcp_list)
	tcp_row "raw: connect and accept $tcp_peers" ms ""
	while IFS='|' read -r name what unit bound; do
		tcp_row "$what" "$unit" ""
		[ -z "$bound" ] || tcp_row "$what" x "" "$bound"
	done < <(tcp_peers_list)
}

# Instructions for one PUT more, at the receiver and the sender. Both wait, so
# that no empty turn of the loop is counted; how many messages a turn finds
# depends on the other process.
tcp_counted() { # NAME WHAT DEPTH
	local name=$1 what=$2 depth=$3 n=10240 few many i v

	few=($(instructions "$bin/tcp" "$what" block 64 "$depth" 4096 ${n}n))
	many=($(instructions "$bin/tcp" "$what" block 64 "$depth" 4096 $((3 * n))n))
	# The receiver ends first.
	for i in 0 1; do
		v=$(((many[i] - few[i]) / (2 * n)))
		row "$name, $([ $i = 0 ] && echo receiver || echo sender)" \
			instructions "" $v $v $v
	done
}

# layers PREFIX: of the profiles PREFIX.PID of two processes, the child first: a
# line "process layer instructions" for each.
layers() {
	local f i=0

	for f in $(ls "$1".* | sort -t. -k2 -n -r); do
		callgrind_annotate --threshold=100 --show-percs=no "$f" | awk -v i=$i '
			/^ *[0-9,]+ +[^ ]+:[^ ]/ {
				gsub(",", "", $1)
				layer = "system and libev"
				if (match($2, /(bench|lnet|base|lnd\/[a-z]+lnd)\/[a-z_0-9]+\.[ch]:/))
					layer = substr($2, RSTART, RLENGTH)
				sub("/[^/]*:$", "", layer)
				sum[layer] += $1
			}
			END { for (l in sum) printf "%d|%s|%d\n", i, l, sum[l] }'
		i=$((i + 1))
	done
}

# Instructions for one operation more, by the folders they are in.
tcp_layers() { # NAME WHAT DEPTH
	local name=$1 what=$2 depth=$3 n=4096 k dir side layer v

	dir=$(mktemp -d "$BUILD/bench-layers.XXXXXX")
	for k in 1 3; do
		valgrind --tool=callgrind --callgrind-out-file="$dir/$k.%p" \
			"$bin/tcp" "$what" block 64 "$depth" 4096 $((k * n))n \
			>"$dir/log" 2>&1
		layers "$dir/$k" | sort >"$dir/$k-layers"
	done
	while IFS='|' read -r side layer v; do
		row "$name, $([ "$side" = 0 ] && echo server || echo client), $layer" \
			instructions "" "$v" "$v" "$v"
	done < <(awk -F'|' -v n=$((2 * n)) '
		NR == FNR { few[$1 "|" $2] = $3; next }
		{ $3 = int(($3 - few[$1 "|" $2]) / n) }
		$3 > 0 { print $1 "|" $2 "|" $3 }' \
		"$dir/1-layers" "$dir/3-layers")
	rm -r "$dir"
}

tcp_measure() {
	local i

	values=$(mktemp "$BUILD/bench-tcp.XXXXXX")
	echo "TCP on loopback: server on the first core, client on the last one, $(
		cat /proc/sys/net/ipv4/tcp_congestion_control), $runs rounds of" \
		"$(tcp_list | wc -l) measurements of $tcp_ms ms"
	: >"$values.disturbed"
	for ((i = 0; i < runs; i++)); do
		tcp_round >>"$values"
	done
	echo "$(wc -l <"$values.disturbed") of $((runs * ($(tcp_list | wc -l) + 2)))" \
		"measurements were disturbed by other processes"
	tcp_rows
	tcp_counted "PUT 64 B one way, 256 on the way" flood 256
	tcp_counted "PUT+ACK 64 B, depth 64" put 64
	tcp_layers "as an RPC 64 B" calls 1
	tcp_layers "as RPCs 64 B, depth 64" calls 64
	rm "$values" "$values.disturbed"
}
