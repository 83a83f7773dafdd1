# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about requests and replies over TCP on the loopback interface:
# raw TCP, other libraries, and ours. For sourcing, after tcp.sh; uses row(),
# $runs, and the programs in $bin.
#
# Each point (size, depth, mode) is measured with all programs, one after the other,
# in each round, so that what is compared was measured within seconds; ratios are
# taken within a round, and then their median.
#
# What takes part, if it is there:
#
#	$bin/raw_tcp		the bounds
#	$bin/rpc		ours: bench/rpc.c, a program of module.mk
#	bench/peers/peer_*	other libraries; built here, since nothing else needs
#				them (group "bench" of deps.txt)
#
# All but raw_tcp take the options, and print the lines, of bench/load.h:
#
#	PROGRAM --size BYTES --depth N --time SECONDS --poll|--block
#		[--bulk read|write]

rpc_ms=300 # of each measurement, after a tenth of a second of warm-up

# Each line: name | source | pkg-config's name | Debian package | the only mode
# that it has, if it has but one
rpc_peers() {
	cat <<-'END'
	ZeroMQ (block)|peer_zmq.c|libzmq|libzmq3-dev|block
	UCX|peer_ucx.c|ucx|libucx-dev|
	libfabric|peer_fabric.c|libfabric|libfabric-dev|
	gRPC|peer_grpc.cc|grpc++|libgrpc++-dev|
	END
}

# Each line: text | mode | size | depth | bulk: read, write or nothing | what the
# programs' line of that name is compared by | its unit | our aim for it | our aim
# for its ratio to raw
rpc_points() {
	local size text depth mode aim bulk

	for size in 64 4096; do
		text="$size B"
		[ $size = 64 ] || text="$((size / 1024)) KiB"
		for depth in 1 16 64 256; do
			case $size/$depth in
			64/16) aim=">= 450000" ;;
			64/64) aim=">= 1200000" ;;
			64/256) aim=">= 2500000" ;;
			4096/64) aim=">= 400000" ;;
			*) aim= ;;
			esac
			for mode in poll block; do
				[ $depth = 1 ] &&
					echo "$text, depth 1, $mode|$mode|$size|1||median|us||<= 1.2" ||
					echo "$text, depth $depth, $mode|$mode|$size|$depth||rate|1/s|$aim|"
			done
		done
	done
	for bulk in read write; do
		for depth in 1 4; do
			for mode in poll block; do
				echo "$bulk 1 MiB, depth $depth, $mode|$mode|1048576|$depth|$bulk|rate|GB/s||>= 0.9"
			done
		done
	done
}

# ---- other libraries ----

# Compiles peer $1 from source $2 with the flags of pkg-config's $3.
rpc_compile() {
	local out=$1 source=$SRC/bench/peers/$2 package=$3
	local c="gcc -std=gnu11 -O2 -D_GNU_SOURCE -I$SRC" object objects=()

	for object in duo load; do
		objects+=("$out.$object.o")
		$c -c -o "$out.$object.o" "$SRC/bench/$object.c" || return 1
	done
	[[ $source == *.c ]] || c="g++ -std=c++14 -O2 -I$SRC"
	# shellcheck disable=SC2046 # words on purpose
	$c -o "$out" "$source" "${objects[@]}" \
		$(pkg-config --cflags --libs "$package")
}

# rpc_prepare [REGEX]: sets programs: lines of name | command | the only mode, of what
# takes part, ours first; of the peers those whose line matches.
rpc_prepare() {
	local name source package debian only out

	programs=()
	if [ -x "$bin/rpc" ]; then
		programs+=("ulnet|$bin/rpc|")
	else
		echo "bench: left out: ulnet, there is no bench/rpc"
	fi
	"$top/scripts/install_deps" bench ||
		echo "bench: goes on with the libraries that are there"
	while IFS='|' read -r name source package debian only; do
		out=$bin/${source%.*}
		if ! pkg-config --exists "$package"; then
			echo "bench: left out: $name, $debian is not installed"
		elif ! rpc_compile "$out" "$source" "$package" \
			>"$out.log" 2>&1 </dev/null; then
			echo "bench: left out: $name, it was not built: $out.log"
		else
			programs+=("$name|$out|$only")
		fi
	done < <(rpc_peers | grep -E "${1:-.}")
}

# ---- measurements ----

# What $2 of all of bulk messages of $3 bytes is in $1.
rpc_in() { # UNIT RATE SIZE
	awk -v unit="$1" -v v="$2" -v size="$3" \
		'BEGIN { printf "%.9g", unit == "GB/s" ? v * size / 1e9 : v }'
}

rpc_raw() { # TEXT MODE SIZE DEPTH BULK
	local text=$1 mode=${2/block/epoll} size=$3 depth=$4 bulk=$5 number

	if [ -n "$bulk" ]; then # prints bytes/s
		undisturbed timeout 60 "$bin/raw_tcp" "$bulk" "$mode" "$size" \
			"$depth" 0 $rpc_ms
		echo "$text: raw|$(rpc_in GB/s "$number" 1)"
	elif [ "$depth" = 1 ]; then
		undisturbed timeout 60 "$bin/raw_tcp" echo "$mode" "$size" 1 0 \
			$rpc_ms
		echo "$text: raw|$number"
	else
		undisturbed timeout 60 "$bin/raw_tcp" bounce "$mode" "$size" \
			"$depth" 0 $rpc_ms
		echo "$text: raw|$number"
		undisturbed timeout 60 "$bin/raw_tcp" bounce "$mode" "$size" \
			"$depth" $((1 << 20)) $rpc_ms
		echo "$text: raw, many a send()|$number"
	fi
}

# All programs at one point. Of the others, the best counts once more.
rpc_point() { # TEXT MODE SIZE DEPTH BULK METRIC UNIT [OPTION]
	local text=$1 mode=$2 size=$3 depth=$4 bulk=$5 metric=$6 unit=$7
	local p name command only key v number best=

	for p in "${programs[@]}"; do
		IFS='|' read -r name command only <<<"$p"
		undisturbed timeout 60 "$command" --size "$size" \
			--depth "$depth" --"${only:-$mode}" \
			--time "$(awk "BEGIN { print $rpc_ms / 1000 }")" \
			${bulk:+--bulk "$bulk"} ${8:+"$8"}
		while read -r key v; do
			if [ "$key" = "$metric" ]; then
				v=$(rpc_in "$unit" "$v" "$size")
				[ "$name" = ulnet ] || best+=" $v"
				echo "$text: $name|$v"
			else
				echo "$text: $name, $key|$v"
			fi
		done <<<"$number"
	done
	[ -z "$best" ] || echo "$text: best|$(tr ' ' '\n' <<<"${best# }" |
		sort -g | if [ "$unit" = us ]; then head -n 1; else tail -n 1; fi)"
}

rpc_round() {
	local text mode size depth bulk metric unit rest

	while IFS='|' read -r text mode size depth bulk metric unit rest; do
		rpc_raw "$text" "$mode" "$size" "$depth" "$bulk"
		rpc_point "$text" "$mode" "$size" "$depth" "$bulk" "$metric" \
			"$unit"
	done < <(rpc_points)
}

# ---- what came out ----

# The rows of one program at one point.
rpc_program_rows() { # NAME TEXT METRIC UNIT AIM RATIO-AIM
	local name=$1 text=$2 metric=$3 unit=$4 aim=$5 ratio_aim=$6

	if [ "$name" != ulnet ]; then
		aim='' ratio_aim=''
	fi
	tcp_row "$text: $name" "$unit" "$aim"
	tcp_row "$text: $name" x "$ratio_aim" "$text: raw"
	if [ "$name" = ulnet ] && grep -q "^$text: best|" "$values"; then
		tcp_row "$text: $name" x \
			"$([ "$unit" = us ] && echo "< 1" || echo "> 1")" \
			"$text: best" "to the best other"
	fi
	[ "$metric" != median ] || tcp_row "$text: $name, p99" us ""
	tcp_row "$text: $name, cpu" us ""
}

rpc_rows() {
	local text mode size depth bulk metric unit aim ratio_aim p

	while IFS='|' read -r text mode size depth bulk metric unit aim ratio_aim; do
		tcp_row "$text: raw" "$unit" ""
		! grep -q "^$text: raw, many" "$values" ||
			tcp_row "$text: raw, many a send()" "$unit" ""
		for p in "${programs[@]}"; do
			rpc_program_rows "${p%%|*}" "$text" "$metric" "$unit" \
				"$aim" "$ratio_aim"
		done
	done < <(rpc_points)
}

# rpc_cell WHAT [BOUND]: "median (min to max)" of what the rounds gave, and the
# median of its ratio to the bound.
rpc_cell() {
	local v ratio

	# shellcheck disable=SC2207 # three numbers
	v=($(medians "$1"))
	[ ${#v[@]} != 0 ] || return 0
	ratio=$(medians "$1" "${2:-}")
	echo "${v[0]} (${v[1]} to ${v[2]})${2:+, ${ratio%% *} x}"
}

# The same as a table in Markdown; "x" is the ratio to raw TCP.
rpc_table() {
	local text mode size depth bulk metric unit aim ratio_aim p line

	line="| what | unit | raw TCP | raw TCP, many a send()"
	for p in "${programs[@]}"; do
		line+=" | ${p%%|*}"
	done
	line+=" | aim |"
	echo "$line"
	sed 's/[^|]\+/ --- /g' <<<"$line"
	while IFS='|' read -r text mode size depth bulk metric unit aim ratio_aim; do
		line="| $text | $unit | $(rpc_cell "$text: raw")"
		line+=" | $(rpc_cell "$text: raw, many a send()")"
		for p in "${programs[@]}"; do
			line+=" | $(rpc_cell "$text: ${p%%|*}" "$text: raw")"
		done
		echo "$line | $aim${ratio_aim:+$ratio_aim x} |"
	done < <(rpc_points)
}

rpc_measure() {
	local i programs

	rpc_prepare
	values=$(mktemp "$BUILD/bench-rpc.XXXXXX")
	echo "requests and replies on loopback: server core 0, client core" \
		"$(($(nproc) - 1)), $runs rounds of $(rpc_points | wc -l) points," \
		"$rpc_ms ms for each program; raw: one send() for each message"
	: >"$values.disturbed"
	for ((i = 0; i < runs; i++)); do
		rpc_round >>"$values"
	done
	echo "$(wc -l <"$values.disturbed") measurements were disturbed by other" \
		"processes"
	rpc_rows
	rpc_table >"$BUILD/bench-rpc.md"
	echo "bench: $BUILD/bench-rpc.md"
	rm "$values" "$values.disturbed"
}
