#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rpcping and rpcserve, each a node with a loopback address of its own:
# requirement H4.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
# Nothing is to be too late, unless it says so by another deadline.
client=(--net 'tcp(127.0.0.1)' --port "$port" --deadline 60)
server=127.0.0.2@tcp

ping() { # STATUS ARGUMENT...
	run "$1" timeout 100 "$rpcping" "${client[@]}" "${@:2}"
}

# json STATUS CONDITION ARGUMENT...: a run with --json. The condition is Perl's,
# on $j, the object, and $l, its latencies.
json() {
	ping "$1" --json "${@:3}"
	perl -MJSON::PP -e '
		local $/;
		my $j = decode_json(<STDIN>);
		my $l = $j->{latency_us};
		my $why = $j->{losses};
		my @keys = qw(attempts bytes bytes_per_s calls calls_per_s
			extensions latency_us losses lost not_begun queries rails
			refusals resent retries seconds);
		push @keys, qw(hedged moves servers) if $j->{servers};
		push @keys, qw(counted targets) if $j->{targets};
		"@{[sort keys %$j]}" eq "@{[sort @keys]}" or die "keys of it\n";
		for my $t (@{$j->{targets}}) {
			my @own = grep !/^(rails|counted|targets)$/, @keys;
			"@{[sort keys %$t]}" eq "@{[sort @own, qw(explain target)]}"
				or die "keys of a target\n";
			"@{[sort keys %{$t->{explain}}]}" eq "attempts_max " .
				"attempts_per_call paths time_us transmissions_per_call"
				or die "keys of explain\n";
			keys %{$t->{explain}{time_us}} == 7 or die "stages\n";
		}
		"@{[sort keys %$l]}" eq "max min p50 p90 p99 p999"
			or die "keys of latency_us\n";
		my @l = @$l{qw(min p50 p90 p99 p999 max)};
		for (1 .. 5) {
			die "latencies are not in order\n"
				if defined $l[0] && $l[$_] < $l[$_ - 1];
		}
		(eval $ARGV[0]) or die "not so: $ARGV[0] $@\n";
	' "$2" <"$dir/out" >"$dir/json" 2>&1 || {
		complain "$ran: the JSON is wrong"
		sed 's/^/| /' "$dir/json" "$dir/out" "$dir/err"
	}
	expect "$ran: one line" test "$(wc -l <"$dir/out")" = 1
}

# ---- the server ----

run 0 "$rpcserve" --list
has out '^echo: '
has out '^brw: '
run 2 "$rpcserve" --service eco
has err "^rpcserve: --service eco: there are: echo, brw\$"
run 2 "$rpcserve" x
has err "^rpcserve: unexpected argument: x\$"
for args in '--buffers 1' '--buffers 1025' '--workers 0' '--workers 12x' '--queue -1' '--window 1.5' \
	'--segments 257' '--buffers x' '--memory 1' '--memory 5T' '--grace x' \
	'--grace 5d' '--port 65536' '--cpts 17' '--accept some' '--log x'; do
	run 2 "$rpcserve" $args
	has err "^rpcserve: $args: .* (is|are) expected"
	silent out
done
run 1 "$rpcserve" --net 'tcp(127.0.0.1)' --port "$port" --service echo --policy 'tbf rate=5 dept=3'
has err "service echo: the configuration is refused: policy: 'tbf rate=5 dept=3', at byte 11: rule 1: dept: there is no such item\$"
run 1 "$rpcserve"
has err "^rpcserve: no network: --net or --config is needed, or --socket"
silent out
run 1 "$rpcserve" --net 127.0.0.50@tcp --port "$port"
has err "^rpcserve: --net 127.0.0.50@tcp: .*: 'tcp\(127.0.0.50\)'$"
run 2 "$rpcserve" --net '' --port "$port"
has err "^rpcserve: --net '': a net is expected"
run 2 "$rpcserve" --grace -1
has err "^rpcserve: --grace -1: a time from 0, at most 366 days, is expected"
run 2 "$rpcserve" --poll --cpts 2
has err "^rpcserve: --cpts: "
run 1 "$rpcserve" --net 'tpc(127.0.0.2)' --port "$port"
has err "^rpcserve: --net tpc\\(127.0.0.2\\): at character 1: "
silent out

need_rpcserve a --net 'tcp(127.0.0.2),tcp1(127.0.0.2)' --port "$port"
ran="ready line"
echo "$ready" >"$dir/out"
same out <<END
rpcserve: ready: 127.0.0.2@tcp, 127.0.0.2@tcp1, port $port (kernel nodes use 988), services echo (portal 36), brw (portal 37)
END

# ---- command line ----

for args in '--count 0' '--count x' '--time 0' '--time 5d' '--warmup -1' \
	'--inflight 65537' '--inflight 0' '--rate 0' '--rate 2G' '--batch 0' \
	'--batch 257' '--deadline 0' '--deadline 1.2.3' '--size 983041' '--size 1T' \
	'--size -1' '--bulk-read 0' '--bulk-write 257M' '--segments 257' \
	'--delay x' '--grace -1' '--progress 0' '--progress 1000' '--semantics twice' \
	'--retry some' '--retry full:x' '--retry :1' '--retry none:' '--retry mad:-1' \
	'--interval 0' '--port 65536' '--cpts 17' '--replicas some' '--hedge 0' '--hedge 1001' \
	'--accept some' '--log x'; do
	run 2 "$rpcping" $args "$server"
	has err "^rpcping: $args: .* (is|are) expected"
	silent out
done
usage() { # PATTERN ARGUMENT...
	run 2 "$rpcping" "${@:2}"
	has err "$1"
	silent out
}
usage "^rpcping: missing: TARGET"
usage "^rpcping: 10.0.0.1@tcp,: '': a NID, or the name of a host, is" 10.0.0.1@tcp,
usage "^rpcping: \\*@tcp: '\\*@tcp': a NID, or the name of a host" '*@tcp'
usage ": '10.0.0.1@tcp': this NID comes twice" 10.0.0.1@tcp,10.0.0.2@tcp,10.0.0.1@tcp
usage "--bulk-read and --bulk-write" --bulk-read 1 --bulk-write 1 "$server"
usage "^rpcping: --size is for calls without" --bulk-read 1 --size 1 "$server"
usage "^rpcping: --segments is for" --segments 2 "$server"
usage "^rpcping: --segments 2: 3145728 bytes can be cut into 3 to 256" \
	--bulk-read 3M --segments 2 "$server"
usage "^rpcping: --segments 4: 3 bytes can be cut into 1 to 3" \
	--bulk-read 3 --segments 4 "$server"
usage "^rpcping: --service: .* its --method, too" --service x "$server"
usage "^rpcping: --service: .* no bulk data" --service x --method y --verify \
	"$server"
usage "^rpcping: service echo has no method Roar that can be used" \
	--method Roar "$server"
usage "^its methods: Raw \\(" --method Roar "$server"
usage "^rpcping: service echo has no method Raw that .*--delay" --method Raw \
	--delay 1 "$server"
usage "^rpcping: service brw has no method that .*--bulk-read and --delay" \
	--bulk-read 1 --delay 1 "$server"
usage "^rpcping: --progress is for calls with --delay" --progress 1 "$server"
usage "^rpcping: --cpts: " --poll --cpts 2 "$server"
usage "^rpcping: --hedge is for --replicas" --hedge 3 "$server"
usage "^rpcping: --replicas: file:///x: beside a target with a scheme there is no other" \
	--replicas least file:///x "$server"
usage "^rpcping: --replicas: 12346-127.0.0.3@tcp: the servers have different process ids" \
	--replicas least "$server" 12346-127.0.0.3@tcp
usage "^rpcping: --inflight 65536: with 268435456 bytes .* more than the memory" \
	--inflight 65536 --bulk-read 256M "$server"
usage "^rpcping: --inflight 65536: .* for 2 targets" --inflight 65536 --rate 1 \
	--bulk-read 256M "$server" 127.0.0.3@tcp
usage "--no-such" --no-such "$server"
run 1 "$rpcping" --net 'tcp(no-such-if)' "$server"
has err "^rpcping: --net tcp\\(no-such-if\\): "

# ---- small calls ----

ping 0 --count 100 "$server"
silent err
has out "^$server: echo.Raw, 64 bytes, 1 under way\$"
has out "^  calls 100, lost 0, resent [0-9]+, in [0-9.]+ s: [0-9]+ calls/s, [0-9.]+ [kM]?B/s\$"
has out "^  latency us: min [0-9.]+, p50 [0-9.]+, p90 [0-9.]+, p99 [0-9.]+, p99.9 [0-9.]+, max [0-9.]+\$"

# On a machine that is busy with something else a call may be asked about, and sent
# once more.
json 0 '$j->{calls} == 1000 && $j->{lost} == 0 && !$j->{refusals} &&
	$j->{attempts} == 1000 + $j->{resent} &&
	$j->{bytes} == 128000 && $j->{seconds} > 0 && $l->{min} > 0 &&
	abs($j->{calls_per_s} * $j->{seconds} - 1000) < 1 &&
	abs($j->{bytes_per_s} * $j->{seconds} - 128000) < 128' \
	--count 1000 --inflight 16 "$server"
silent err
json 0 '@{$j->{rails}} == 1 && $j->{rails}[0]{nid} =~ /^127[.]0[.]0[.]1.tcp$/ &&
	$j->{rails}[0]{sent} > 5000 && $j->{rails}[0]{sent_percent} == 100 &&
	$j->{rails}[0]{received_percent} == 100' --count 50 --size 100 "$server"
json 0 '$j->{calls} == 2 && $j->{bytes} == 0' --count 2 --size 0 "$server"
for size in 0 1 63 4k 100000 960k; do
	json 0 '$j->{calls} == 20 && $j->{lost} == 0' --count 20 --inflight 4 \
		--size "$size" --verify "$server"
done
for method in RawWorker Echo EchoWorker; do
	json 0 '$j->{calls} == 200' --count 200 --inflight 32 --size 1000 \
		--method "$method" --verify "$server"
done
# What does not fit with what is around it.
ping 1 --count 1 --size 960k --method Echo "$server"
has err "^rpcping: $server: --size: too long"
for method in Echo EchoWorker; do
	json 0 '$j->{calls} == 6 && $l->{min} >= 20000' --count 6 --inflight 6 \
		--method "$method" --delay 20ms "$server"
	# All of its time, however it is divided.
	json 0 '$j->{calls} == 6 && $l->{min} >= 20000' --count 6 --inflight 6 \
		--method "$method" --delay 20ms --progress 7 --verify "$server"
done
# A slow call is not lost, as long as its server says that it is at work.
ping 0 --count 2 --inflight 2 --method Echo --delay 5 --progress 5 \
	--deadline 60 --explain "$server"
has out "^  calls 2, lost 0, "
has out ", early replies [1-9]"
json 0 '$j->{calls} == 2 && $j->{lost} == 0 &&
	$j->{attempts} == 2 + $j->{resent} && $j->{extensions} >= 1' \
	--count 2 --inflight 2 --method EchoWorker --delay 5 --progress 5 \
	--deadline 60 "$server"
for semantics in idempotent at-most-once exactly-once; do
	json 0 '$j->{calls} == 50' --count 50 --semantics "$semantics" "$server"
done
for retry in full equal mad none full:0 mad:3 none:4000000; do
	json 0 '$j->{calls} == 50' --count 50 --retry "$retry" "$server"
done
json 0 '$j->{calls} > 0 && $j->{seconds} >= 4' --time 5 --warmup 100ms \
	--rate 100 "$server"
json 0 '$j->{calls} == 50 && $j->{seconds} >= 0.48' --rate 100 --count 50 \
	"$server"
json 0 '$j->{calls} == 4096' --count 4k --inflight 256 --poll "$server"
ping 0 --count 10 --service echo --method Raw 12345-127.0.0.2@tcp
# Of a service that it does not know there is nothing to verify.
ping 1 --count 1 --service other --method M --deadline 3 "$server"
has err "^rpcping: $server: a call was lost: no service; certainly not executed"
# Nor is it waited for.
json 1 '$j->{lost} == 1 && $j->{seconds} < 10' --count 1 --service other --method M \
	--deadline 1h --retry none:0 "$server"
has err "^rpcping: $server: a call was lost: no service; certainly not executed"

# ---- output ----

ping 0 --time 5 --rate 100 --inflight 1 --live --interval 0.1 --json "$server"
has err '^[0-9.]+ s: [1-9][0-9]* calls/s, [0-9.]+ [kM]?B/s, p50 [0-9.]+ us, p99 [0-9.]+ us, [01] under way, 0 lost$'
expect "nothing but JSON" test "$(wc -l <"$dir/out")" = 1
ping 0 --count 50 --explain --delay 2ms "$server"
for stage in connecting window wire throttled 'server queue' service fetch; do
	has out "^  $stage +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+%\$"
done
has out "^  rail 127.0.0.1@tcp to $server: 50, credits [0-9]+, fewest -?[0-9]+\$"
has out "^  interface 127.0.0.1@tcp: sent 100.0%, received 100.0%\$"
has out "^  attempts: 1[.][0-9]+ for each call, at most [1-9][0-9]*; queries [0-9]+, early replies [0-9]+, retries [0-9]+, refusals 0; "
has out "^  counted: .*, replies_received [1-9]"
ping 1 --count 3 --explain --deadline 0.5 127.0.0.9@tcp
has out "^  attempts: 0[.]000 for each call, at most 0; "
run 1 bash -c '"$@" >/dev/full' - "$rpcping" "${client[@]}" --count 1 "$server"
has err "^rpcping: stdout: No space left on device\$"
run 0 "$rpcping" --help
run 0 "$rpcping" --version

# ---- bulk data ----

for size in 1 4095 1M 3145729; do
	bytes=${size/1M/1048576}
	for way in read write; do
		json 0 '$j->{calls} == 12 && $j->{lost} == 0 &&
			$j->{bytes} == 12 * '"$bytes" --count 12 \
			--inflight 3 "--bulk-$way" "$size" --verify "$server"
		json 0 '$j->{calls} == 12' --count 12 --inflight 3 \
			"--bulk-$way" "$size" "$server"
	done
done
for way in read write; do
	json 0 '$j->{calls} == 4 && $j->{bytes} == 4 << 26' --count 4 \
		--inflight 2 "--bulk-$way" 64M --verify --checksum "$server"
	json 0 '$j->{calls} == 5' --count 5 "--bulk-$way" 100001 \
		--segments 7 --verify --checksum "$server"
done

# Bodies have checksums, too, also those of long replies.
json 0 '$j->{calls} == 20 && $j->{lost} == 0' --count 20 --inflight 4 \
	--size 100000 --checksum "$server"

# ---- several targets ----

need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port" --service echo --poll \
	--socket "$dir/b"
ran="ready line"
echo "$ready" >"$dir/out"
has out "^rpcserve: ready: 127.0.0.3@tcp, .*, services echo \\(portal 36\\), socket $dir/b\$"
ctl 0 --socket "$dir/b" net show --net tcp
has out "nid: 127.0.0.3@tcp"
# It outlives its terminal. The lower number is taken first.
kill -HUP "${pids[b]}"
ping 0 --count 100 --inflight 4 "$server" 127.0.0.3@tcp
has out "^$server: echo.Raw"
has out "^127.0.0.3@tcp: echo.Raw"
has out "^all: echo.Raw"
has out "^  calls 200, lost 0"
json 0 '$j->{calls} == 200' --count 100 "$server" 127.0.0.3@tcp
# What --explain prints, for each target.
json 0 '$j->{calls} == 20 && @{$j->{targets}} == 2 && $j->{counted}{replies_received} > 0 &&
	$j->{targets}[0]{target} =~ /^127.0.0.2.tcp$/ && $j->{targets}[1]{calls} == 10 &&
	$j->{targets}[1]{explain}{paths}[0]{target} =~ /^127.0.0.3.tcp$/ &&
	$j->{targets}[1]{explain}{paths}[0]{calls} == 10 &&
	$j->{targets}[0]{explain}{time_us}{service}{mean} > 0 &&
	$j->{targets}[0]{explain}{attempts_per_call} >= 1' \
	--count 10 --delay 2ms --explain "$server" 127.0.0.3@tcp

# ---- servers of one service ----

# Which one gets how much depends on which is slow, as the machine is busy.
balance='do { my %n = map { $_->{nid} => $_->{answered} } @{$j->{servers}}; my $sum = 0;
	$sum += $_ for values %n; $sum == $j->{calls} && !grep !/^127.0.0.[23].tcp$/, keys %n }'
ping 0 --replicas turns --count 100 "$server" 127.0.0.3@tcp
has out "^$server 127.0.0.3@tcp: echo.Raw, 64 bytes, 1 under way\$"
has out "^  calls 100, lost 0"
has out "^  server 127.0.0.[23]@tcp: answered [0-9]+ \\([0-9.]+%\\), lost 0, latency us: mean [0-9.]+, max [0-9.]+\$"
has out "^  went on to another server [0-9]+, hedged 0\$"
json 0 '$j->{calls} == 100 && '"$balance" --replicas turns --count 100 "$server" 127.0.0.3@tcp
# Nobody is at the first one.
json 0 '$j->{lost} == 0 && $j->{moves} >= 1 && @{$j->{servers}} == 1 &&
	$j->{servers}[0]{nid} =~ /^127.0.0.3.tcp$/ && $j->{servers}[0]{answered} == 50 &&
	$j->{servers}[0]{answered_percent} == 100 && $j->{servers}[0]{mean_us} > 0 &&
	@{$j->{targets}} == 1 && $j->{targets}[0]{servers}[0]{answered} == 50' \
	--replicas first --count 50 --explain 127.0.0.9@tcp 127.0.0.3@tcp
ping 1 --replicas first --count 1 --deadline 5 127.0.0.9@tcp
has err "^rpcping: 127.0.0.9@tcp: a call was lost: unreachable .*, at 127.0.0.9@tcp\$"
printf '%s\n' 127.0.0.2@tcp '127.0.0.3@tcp 3' >"$dir/servers"
json 0 '$j->{calls} == 40 && '"$balance" --replicas least --hedge 1 --count 40 "file://$dir/servers"
# Names, as a list.
ping 0 --replicas turns --count 10 --verify --bulk-read 1M localhost "$server" 127.0.0.3@tcp
has out "^localhost,$server,127.0.0.3@tcp: brw.Read"

# What the service has counted.
ctl 0 --socket "$dir/b" rpc show
has out "service: .*echo"
has out "method: .*Raw"
# NIDs of one node.
run 0 "$rpcping" --net 'tcp(127.0.0.1),tcp1(127.0.0.1)' --port "$port" \
	--count 10 127.0.0.2@tcp1,127.0.0.2@tcp
has out "^127.0.0.2@tcp1,127.0.0.2@tcp: echo.Raw"
# Both are found by one, and live lines say what each carries.
one=("${client[@]}")
client=(--net 'tcp(127.0.0.1),tcp1(127.0.0.1)' --port "$port")
start_ping --time 1h --inflight 16 --explain "$server"
await "$dir/live" ', [0-9]+ lost, rails [1-9][0-9]*% [1-9][0-9]*%$'
kill -INT "${pids[ping]}"
end_ping 0
has out "^  rail 127.0.0.1@tcp1 to 127.0.0.2@tcp1: [1-9]"
client=("${one[@]}")
cat >"$dir/conf" <<'END'
net:
- net type: tcp
  local NI(s):
  - interfaces:
      0: 127.0.0.1
END
run 0 "$rpcping" --config "$dir/conf" --port "$port" --count 10 "$server"
# One of two is not there: the other one's calls are answered.
json 1 '$j->{lost} == 3 && $j->{calls} == 6' --count 3 --inflight 3 \
	--deadline 3 "$server" 127.0.0.9@tcp
has err "^rpcping: 127.0.0.9@tcp: a call was lost: "

# ---- losses ----

# On no net of ours: said at once, not after the deadline.
ping 1 --count 1 --deadline 1h 10.0.0.1@tcp7
has err "^rpcping: 10.0.0.1@tcp7: on no net of this node, which is 127.0.0.1@tcp, and there is no route"
silent out

json 1 '$j->{calls} == 2 && $j->{lost} == 2 && !defined $l->{min} &&
	$j->{calls_per_s} == 0 && @$why == 1 &&
	$why->[0]{cause} eq "unreachable" && $why->[0]{calls} == 2 &&
	$why->[0]{execution} eq "not executed" && $why->[0]{status} < 0' --count 2 --inflight 2 --deadline 1h \
	127.0.0.9@tcp
has err "^rpcping: 127.0.0.9@tcp: a call was lost: unreachable \(127.0.0.9@tcp: Connection refused\); certainly not executed"
has err "^rpcping: is there a node, and does it listen on port $port\\? "
# The first answer decides, unless calls are to wait.
ping 1 --count 2 --deadline 1h 127.0.0.9@tcp
has out "^  calls 1, lost 1,"
ping 1 --wait --count 2 --deadline 0.2 127.0.0.9@tcp
has out "^  lost 2, the first: unreachable "
timeout 100 "$rpcping" "${client[@]}" --wait --count 1 --deadline 1h 127.0.0.9@tcp \
	>"$dir/waited" 2>&1 &
pids[waits]=$!
need_rpcserve c --net 'tcp(127.0.0.9)' --port "$port"
wait "${pids[waits]}" || complain "rpcping --wait: $(cat "$dir/waited")"
unset 'pids[waits]'
stop_lnetd c
ping 1 --count 1 --bulk-read 1 --deadline 1h --retry none:0 127.0.0.3@tcp
has err "^rpcping: 127.0.0.3@tcp: a call was lost: no service; certainly not executed"
usage "^rpcping: service brw has no method Raw" --service brw --method Raw \
	"$server"
# The service takes longer than the caller wants to wait.
ping 1 --count 3 --inflight 3 --delay 1m --deadline 3 "$server"
has err "^rpcping: $server: a call was lost: (deadline|expired); "
has out "^  calls 3, lost 3,"

# What was due while others were under way is in both outputs.
json 0 '$j->{not_begun} > 10 && $j->{lost} == 0 && !@$why' --rate 1k \
	--inflight 1 --delay 50ms --time 5 "$server"
# Memory comes with the calls that need it, not with the 1,024 that may be under
# way: 256 GiB would not be there.
ping 0 --rate 20 --count 2 --bulk-read 16M "$server"
has out "^  calls 2, lost 0,"
memory_of() { # COMMAND...: KiB at most
	perl -MPOSIX -e 'system(@ARGV); my $r = "\0" x 144;
		syscall(98, -1, $r); print((unpack("q*", $r))[4], "\n")' "$@" |
		tail -n 1
}
if [ "$(uname -m)" = x86_64 ]; then
	kib=$(memory_of "$rpcping" "${client[@]}" --rate 20 --count 2 \
		--bulk-read 16M "$server")
	expect "$kib KiB for two calls" test "$kib" -lt 200000
fi

# ---- the end ----

for poll in '' --poll; do
	for signal in INT TERM; do
		start_ping --time 1h --inflight 4 $poll "$server"
		kill -$signal "${pids[ping]}"
		end_ping 0
		has out "^  calls [1-9][0-9]*, lost 0,"
	done
done

# What is not answered in its time of grace is lost.
: >"$dir/live"
"$rpcping" "${client[@]}" --live --interval 0.1 --json --count 4 --inflight 4 \
	--delay 1m --deadline 1m "$server" \
	>"$dir/ping.out" 2>"$dir/live" </dev/null &
pids[ping]=$!
ran="rpcping, unanswered"
await "$dir/live" ' 4 under way'
kill -INT "${pids[ping]}"
end_ping 1
has err "^rpcping: $server: a call was lost: canceled; perhaps executed"
has out '^\{"calls": 4, "lost": 4, "resent": 0, "not_begun": 0, "bytes": 0, '

# Any number share an address, also with the server that they call.
for i in 1 2 3 4; do
	"$rpcping" --net 'tcp(127.0.0.2)' --port "$port" --count 200 \
		--inflight 4 "$server" >"$dir/share.$i" 2>&1 </dev/null &
	pids[share$i]=$!
done
for i in 1 2 3 4; do
	wait "${pids[share$i]}" || complain "rpcping $i on the server's address"
	unset "pids[share$i]"
	expect "rpcping $i: all calls were answered" \
		grep -q 'calls 200, lost 0' "$dir/share.$i"
done

# A server that ends answers what is under way.
start_ping --time 1h --inflight 4 --deadline 1 127.0.0.3@tcp
stop_lnetd b
expect "SIGHUP is noted" grep -q "SIGHUP is ignored" "$dir/b.err"
await "$dir/live" 'a call was lost: '
kill -INT "${pids[ping]}"
end_ping 1
need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port"
start_ping --time 1h --inflight 4 --delay 10ms 127.0.0.3@tcp
stop_lnetd b
kill -INT "${pids[ping]}"
wait "${pids[ping]}"
unset 'pids[ping]'

# The time of grace is one for all services.
need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port" --grace 0.5
start_ping --time 1h --inflight 4 --delay 20ms 127.0.0.3@tcp
kill -STOP "${pids[ping]}"
stop_lnetd b
kill -CONT "${pids[ping]}"
kill -INT "${pids[ping]}"
wait "${pids[ping]}"
unset 'pids[ping]'

# Who does not want to wait for it sends another signal.
need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port" --grace 1h --log info
"$rpcping" "${client[@]}" --count 1 --inflight 1 --live --interval 0.1 --delay 1h \
	--deadline 1h 127.0.0.3@tcp >"$dir/out" 2>"$dir/live" </dev/null &
pids[ping]=$!
await "$dir/live" ' 1 under way'
kill -INT "${pids[b]}"
await "$dir/b.err" ': ending'
kill -INT "${pids[b]}"
status=0
wait "${pids[b]}" || status=$?
unset 'pids[b]'
expect "a second signal ends rpcserve" test $status = 130
kill -INT "${pids[ping]}"
wait "${pids[ping]}"
unset 'pids[ping]'

# Without descriptors 0 and 2, messages go nowhere, and to no socket.
"$rpcserve" --net 'tcp(127.0.0.3)' --port "$port" --log debug <&- 2>&- \
	>"$dir/b.out" &
pids[b]=$!
await "$dir/b.out" '^rpcserve: ready'
expect "stdin and stderr are /dev/null" test \
	"$(readlink "/proc/${pids[b]}/fd/0" "/proc/${pids[b]}/fd/2" | uniq)" \
	= /dev/null
ping 0 --count 10 127.0.0.3@tcp
run 0 bash -c 'exec "$@" 0<&- 2>&-' - "$rpcping" "${client[@]}" --count 10 \
	127.0.0.3@tcp
stop_lnetd b

# One that is killed does not, and its calls end all the same. Another one in
# its place is called again.
for poll in '' --poll; do
	need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port"
	start_ping --time 1h --inflight 4 --deadline 2 $poll 127.0.0.3@tcp
	kill -KILL "${pids[b]}"
	wait "${pids[b]}" 2>/dev/null
	unset 'pids[b]'
	await "$dir/live" 'rpcping: 127.0.0.3@tcp: a call was lost: '
	need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port"
	lines=$(wc -l <"$dir/live")
	await "$dir/live" ' [1-9][0-9]* calls/s' $((lines + 3))
	kill -INT "${pids[ping]}"
	end_ping 1
	has out "^  calls [1-9][0-9]*, lost [1-9]"
	stop_lnetd b
done
# With bulk data under way, whose memory is ours again in the end.
for way in read write; do
	need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port"
	start_ping --time 1h --inflight 4 --deadline 2 "--bulk-$way" 2M \
		--verify 127.0.0.3@tcp
	kill -KILL "${pids[b]}"
	wait "${pids[b]}" 2>/dev/null
	unset 'pids[b]'
	await "$dir/live" 'rpcping: 127.0.0.3@tcp: a call was lost: '
	kill -INT "${pids[ping]}"
	end_ping 1
done

# Spans of both sides: those of the server are below those of the client. SIGHUP
# opens the file again.
ids() { # KEY FILE
	grep -o "\"$1\":\"[0-9a-f]*\"" "$2" | cut -d: -f2 | sort
}
need_rpcserve b --net 'tcp(127.0.0.3)' --port "$port" --spans "$dir/served"
for round in 1 2; do
	run 0 timeout 100 "$rpcping" --port "$port" --net 'tcp(127.0.0.1)' \
		--count 3 --spans "$dir/made" 127.0.0.3@tcp
	await "$dir/served" '"kind":2'
	[ $round = 1 ] || break
	mv "$dir/served" "$dir/served.1"
	kill -HUP "${pids[b]}"
	expect "SIGHUP opens the file again" timeout 60 sh -c "
		until [ -e '$dir/served' ]; do sleep 0.02; done"
done
stop_lnetd b
cat "$dir"/served* >"$dir/all"
expect "six spans of the client" [ "$(ids spanId "$dir/made" | wc -l)" = 6 ]
expect "six spans of the server, below them" \
	cmp <(ids spanId "$dir/made") <(ids parentSpanId "$dir/all")
run 1 timeout 100 "$rpcping" --port "$port" --net 'tcp(127.0.0.1)' \
	--count 1 --spans /nonexistent/spans 127.0.0.3@tcp
has err '^rpcping: --spans /nonexistent/spans: No such file'

finish
