#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnetctl's commands against a node that has 0@lo only: what they print, their
# errors, their exit status (LNet wire specification section 10).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

need_lnetd a

# The first N lines of what was printed, without their numbers.
first() { # N
	sed -E "s/: [0-9]+\$/: N/;$1q" "$dir/out" >"$dir/first" &&
		mv "$dir/first" "$dir/out"
}

# ---- net ----

ctl 0 net show
silent err
same out <<END
net:
-     net type: lo
      local NI(s):
      -     nid: 0@lo
            status: up
END
ctl 0 net show -v
same out <<END
net:
-     net type: lo
      local NI(s):
      -     nid: 0@lo
            status: up
            statistics:
                  send_count: 0
                  recv_count: 0
                  drop_count: 0
            tunables:
                  peer_timeout: 0
                  peer_credits: 0
                  peer_buffer_credits: 0
                  credits: 0
            dev cpt: 0
            CPT: "[0]"
END
ctl 0 net show --verbose 2 --net lo
same out <<END
net:
-     net type: lo
      local NI(s):
      -     nid: 0@lo
            status: up
            statistics:
                  send_count: 0
                  recv_count: 0
                  drop_count: 0
            sent_stats:
                  put: 0
                  get: 0
                  reply: 0
                  ack: 0
                  hello: 0
            received_stats:
                  put: 0
                  get: 0
                  reply: 0
                  ack: 0
                  hello: 0
            dropped_stats:
                  put: 0
                  get: 0
                  reply: 0
                  ack: 0
                  hello: 0
            health stats:
                  fatal_error: 0
                  health value: 0
                  interrupts: 0
                  dropped: 0
                  aborted: 0
                  no route: 0
                  timeouts: 0
                  error: 0
                  ping_count: 0
                  next_ping: 0
            tunables:
                  peer_timeout: 0
                  peer_credits: 0
                  peer_buffer_credits: 0
                  credits: 0
            dev cpt: 0
            CPT: "[0]"
END
# An empty list is no error.
ctl 0 net show --net tcp7
silent out
silent err
ctl 254 net show --net carrier
silent out
has err "^show:\$"
has err "^      errno: -2\$"
has err "cannot parse net.*carrier"
ctl 254 net add --net carrier --if eth0
has err "^add:\$"
has err "^-     net:\$"
has err "^      errno: -2\$"
has err "^      descr: ! .*cannot parse net.*carrier"
ctl 234 net add --nid nonsense
has err "nonsense"
ctl 234 net add --nid 0@lo
ctl 254 net add --ip2net 'tcp1 127.1.*.*'
has err "no rule matches an address of this host"
ctl 161 net add --net tcp --if lo --auth-key 1
has err "auth_key: not supported: only networks of type kfi"
ctl 234 net del --net tcp7
has err "^del:\$"
has err "^      errno: -22\$"
has err "^      descr: ! .*cannot del net"
ctl 234 net del --net tcp7 --if eth0
ctl 234 net del --net lo
ctl 234 net add --net tcp --if lo --credits -7
has err '^      descr: ! "credits: -7 is not in -1..1073741823"$'
ctl 234 net add --net tcp --if lo --peer-credits 70000
has err '^      descr: ! "peer_credits: 70000 is not in -1..65535"$'
ctl 234 net add --net tcp --if lo --cpt '[0,5'
has err "^      descr: ! \"cannot parse CPTs '\[0,5'\"\$"
ctl 255 net add --net tcp --if lo --credits many
same err <<END
parser:
    - net:
          errno: -1
          descr: "cannot parse credits value"
END

# ---- settings ----

ctl 0 global show
same out <<END
global:
    numa_range: 0
    max_interfaces: 200
    discovery: 1
    drop_asym_route: 0
    retry_count: 2
    transaction_timeout: 50
    health_sensitivity: 100
    recovery_interval: 1
    router_sensitivity: 100
    lnd_timeout: 16
    response_tracking: 3
    recovery_limit: 0
    max_recovery_ping_interval: 900
    health_gain: 0
    busy_poll: 0
    wait_poll: 50
    large_nids: 0
    alive_router_check_interval: 60
    log: warn
END
# Without routes there is nothing to show.
ctl 0 route show
silent out
silent err
ctl 0 route show --net tcp5 --verbose
silent out
silent err
ctl 0 set transaction_timeout 60
silent out
silent err
ctl 0 global show
has out "^    transaction_timeout: 60\$"
ctl 255 set transaction_timeout 1x
same err <<END
parser:
    - set:
          errno: -1
          descr: "cannot parse transaction_timeout value"
END
ctl 195 set transaction_timeout -5
has err "^add:\$"
has err "^    - transaction_timeout:\$"
has err "^          errno: -61\$"
has err "^          descr: \".*Invalid argument"
ctl 195 set routing 2
has err "^    - routing:\$"
has err "not in 0..1"
ctl 255 set nonsense 1
same err <<END
lnetctl set: 'nonsense' is not a valid command. See 'lnetctl set --list-commands'.
END
ctl 0 global show
has out "^    transaction_timeout: 60\$"

# ---- counters, peers, ping ----

ctl 0 peer list
silent out
ctl 0 peer show
silent out
ctl 254 peer show --nid 10.9.8.7@tcp
has err "^show:\$"
has err "^-     peer:\$"
ctl 234 peer show --nid nonsense@
has err "nonsense"
ctl 0 ping 0@lo
has out "^ping:\$"
has out "^- primary nid: 0@lo\$"
ctl 255 ping 10.9.8.7@tcp
silent out
has err "^manage:\$"
has err "^- ping:\$"
has err "^  errno: -[0-9]+\$"
has err "^  descr: ! 'failed to ping 10.9.8.7@tcp: .*'\$"
ctl 255 ping 10.9.8.7@tcp 0@lo nonsense@
has err "nonsense@"
ctl 255 ping 0@lo,0@lo
ctl 255 ping --source 10.9.8.7@tcp 0@lo
has err "^  descr: ! 'failed to ping 0@lo: the source is no NID of this node'\$"
ctl 255 discover 10.9.8.7@tcp nonsense@
silent out
same err <<END
manage:
- discover:
  errno: -113
  descr: ! 'failed to discover 10.9.8.7@tcp: No route to host'
- discover:
  errno: -22
  descr: ! 'failed to discover nonsense@: that is no NID'
END
ctl 255 discover 0@lo
has err "^  errno: -22\$"
ctl 234 discover
has err "^lnetctl discover: missing: NID[|]NAME...\$"
ctl 234 discover --source 0@lo 0@lo
has err "unrecognized option '--source'"
ctl 255 discover --timeout 0 0@lo
has err "timeout: 0 is not in 1..3600"
ctl 255 discover --timeout soon 0@lo
has err 'descr: "cannot parse timeout value"$'
ctl 0 debug recovery
silent out
ctl 0 debug objects
has out '^objects:$'
has out '^    mds: [0-9]+$'
has out '^    eqs: 0$'
ctl 0 debug recovery -l
ctl 0 debug recovery --peer
silent out
ctl 234 debug recovery nonsense
ctl 234 debug peer
has err "^lnetctl debug peer: missing: --nid\$"
ctl 254 debug peer --nid 10.9.8.7@tcp
has err "^-     peer:\$"
ctl 234 debug peer --nid nonsense@
ctl 0 stats show
has out "^    send_count: [1-9]"
# What a kernel node has comes first.
first 25
same out <<END
statistics:
    msgs_alloc: N
    msgs_max: N
    rst_alloc: N
    errors: N
    send_count: N
    resend_count: N
    response_timeout_count: N
    local_interrupt_count: N
    local_dropped_count: N
    local_aborted_count: N
    local_no_route_count: N
    local_timeout_count: N
    local_error_count: N
    remote_dropped_count: N
    remote_error_count: N
    remote_timeout_count: N
    network_timeout_count: N
    recv_count: N
    route_count: N
    drop_count: N
    send_length: N
    recv_length: N
    route_length: N
    drop_length: N
END
ctl 0 stats reset
silent out
ctl 0 stats show
has out "^    send_count: 0\$"

# ---- health, paths ----

ctl 234 net set --health 500
has err "^lnetctl net set: missing: --nid or --all or --net\$"
ctl 234 net set --all
same err <<END
---
set:
-     net:
      errno: -22
      descr: ! "health is missing"
...
END
ctl 234 net set --all --health 1001
has err 'descr: ! "health: 1001 is not in 0..1000"$'
ctl 255 net set --all --health full
has err 'descr: "cannot parse health value"$'
ctl 254 net set --nid 10.9.8.7@tcp -t 5
has err "^      errno: -2\$"
ctl 254 net set --net tcp9 --health 5
has err 'descr: ! "cannot set the health of tcp9: no such network here"$'
ctl 0 net set -a -t 1000
silent out
silent err
ctl 254 peer set --nid 10.9.8.7@tcp --health 5
has err "^set:\$"
has err "^-     peer:\$"
ctl 234 peer set --health 5
has err "missing: --nid or --all"
ctl 161 peer set --all --state 1
has err "state cannot be set: it is what discovery has found"
ctl 161 net set --all --conns-per-peer 2
has err "conns_per_peer cannot be set: it is given when net add or import adds the interface"
ctl 161 net set --all --lnd-timeout 2
has err "lnd_timeout cannot be set: it follows from transaction_timeout"
ctl 0 peer set --all --health 1000
silent out
ctl 0 path show --nid 0@lo
same out <<END
path:
-     destination: 0@lo
      situation: this node itself
      from: 0@lo
      to: 0@lo
END
ctl 143 path show --nid 10.9.8.7@tcp
has out "^-     destination: 10.9.8.7@tcp\$"
has err "^show:\$"
has err "^-     path:\$"
has err 'descr: ! "no path to 10.9.8.7@tcp: No route to host"$'
ctl 234 path show
has err "^lnetctl path show: missing: --nid\$"
ctl 234 path show --nid nonsense@
has err "nonsense"

# ---- peers that are added ----

ctl 234 peer add --nid 10.0.0.5@tcp
has err "^lnetctl peer add: missing: --prim_nid\$"
ctl 234 peer del
has err "^lnetctl peer del: missing: --prim_nid\$"
ctl 234 peer add --prim_nid 10.0.0.5@tcp --ip2nets x
ctl 234 peer add --prim_nid nonsense
ctl 0 peer add --prim_nid 10.0.0.5@tcp --nid 10.0.1.5@tcp1,10.0.2.5@tcp2 \
	--nid 10.0.3.5@tcp3
silent out
silent err
ctl 239 peer add --prim_nid 10.0.0.6@tcp --nid 10.0.1.5@tcp1
same err <<END
---
add:
-     peer:
      errno: -17
      descr: ! "cannot add NID 10.0.1.5@tcp1 to peer 10.0.0.6@tcp: another configured peer has it"
...
END
ctl 0 peer del --prim_nid 10.0.0.5@tcp --nid 10.0.2.5@tcp2 --force
ctl 0 peer add --prim_nid 10.0.0.4@tcp --non_mr
ctl 0 peer list
same out <<END
peer list:
-     nid: 10.0.0.4@tcp
-     nid: 10.0.0.5@tcp
END
ctl 0 peer show --nid 10.0.1.5@tcp1
same out <<END
peer:
-     primary nid: 10.0.0.5@tcp
      Multi-Rail: true
      peer ni:
      -     nid: 10.0.0.5@tcp
            state: NA
      -     nid: 10.0.1.5@tcp1
            state: NA
      -     nid: 10.0.3.5@tcp3
            state: NA
END
ctl 0 peer show --nid 10.0.0.4@tcp -v3
has out "^      Multi-Rail: false\$"
has out "^      peer state: 8\$"
ctl 0 export --backup
mv "$dir/out" "$dir/peers"
ctl 0 peer del --prim_nid 10.0.0.4@tcp
ctl 0 peer del --prim_nid 10.0.0.5@tcp
ctl 254 peer del --prim_nid 10.0.0.5@tcp
same err <<END
---
del:
-     peer:
      errno: -2
      descr: ! "cannot del peer 10.0.0.5@tcp: no such peer was configured"
...
END
ctl 0 import "$dir/peers"
ctl 0 export --backup
same out <"$dir/peers"
ctl 0 import --del "$dir/peers"
ctl 0 export --backup
mv "$dir/out" "$dir/peers"
run 1 grep "^peer:" "$dir/peers"

# ---- rpc: lnetd runs none ----

ctl 161 rpc show
silent out
same err <<END
---
show:
-     rpc:
      errno: -95
      descr: ! "this node runs no RPC"
...
END
ctl 161 rpc show -v
ctl 161 rpc reset
ctl 234 rpc show nonsense
ctl 234 rpc

# ---- down and up ----

ctl 240 lnet configure
same err <<END
---
configure:
-     lnet:
      errno: -16
      descr: ! "LNet configure error: Object busy"
...
END
ctl 0 lnet unconfigure
silent err
ctl 156 net show
has err "^      errno: -100\$"
ctl 255 ping 0@lo
ctl 156 set retry_count 0
ctl 0 lnet configure --all
ctl 0 net show
has out "nid: 0@lo"

# ---- files ----

ctl 0 export
silent err
has out "^net:\$"
has out "^global:\$"
cp "$dir/out" "$dir/plain"
ctl 0 export "$dir/conf"
silent out
run 0 diff "$dir/plain" "$dir/conf"
ctl 0 export --backup
silent err
mv "$dir/out" "$dir/backup"
run 1 grep -E 'statistics:|status:' "$dir/backup"
ctl 0 import "$dir/backup"
ctl 0 import "$dir/plain"
run 0 bash -c '"$1" import <"$2"' - "$lnetctl" "$dir/plain"
ctl 0 export --backup
same out <"$dir/backup"
echo old >"$dir/conf"
chmod 640 "$dir/conf"
ln -s conf "$dir/link"
ctl 0 export "$dir/link"
run 0 diff "$dir/plain" "$dir/conf"
expect "mode stays" test "$(stat -c %a "$dir/conf")" = 640
expect "link stays" test -L "$dir/link"
expect "nothing half-made" test -z "$(compgen -G "$dir/conf.*")"
ctl 254 export "$dir/none/conf"
has err "^lnetctl: $dir/none/conf: No such file or directory"
ctl 235 export "$dir"
has err "^lnetctl: $dir: Is a directory"
ctl 254 import "$dir/none"
has err "^lnetctl: $dir/none: No such file or directory"
ctl 235 import "$dir"
printf 'global: \0' >"$dir/bad"
ctl 172 import "$dir/bad"
has err "^lnetctl: $dir/bad: not text: a byte of 0 at offset 8"
printf 'global: \xff' >"$dir/bad"
ctl 172 import "$dir/bad"
has err "^lnetctl: import: text that is not UTF-8"
printf 'global:\n    transaction_timeout: 70\nnonsense: 1\n' >"$dir/bad"
ctl 234 import "$dir/bad"
has err "line 3"
has err "nonsense"
ctl 0 global show
has out "transaction_timeout: 50"
# What fails does not keep the rest from being done, if that is asked for.
cat >"$dir/mixed" <<END
peer:
    - primary nid: 10.0.0.5@tcp
    - primary nid: nonsense
      seq_no: 7
    - primary nid: 10.0.0.6@tcp
      peer ni:
        - nid: 10.0.0.5@tcp
    - primary nid: 10.0.0.7@tcp
nonsense: 1
global:
    retry_count: 1
global2:
    retry_count: 2
END
ctl 234 import --ignore_errors "$dir/mixed"
silent out
same err <<END
---
add:
-     peer:
      seq_no: 7
      errno: -22
      descr: ! "line 3, peer 2: cannot parse NID 'nonsense'"
-     peer:
      errno: -17
      descr: ! "line 5, peer 3: cannot add NID 10.0.0.5@tcp to peer 10.0.0.6@tcp: another configured peer has it"
-     import:
      errno: -22
      descr: ! "line 9, column 11: unknown key 'nonsense'"
...
END
ctl 0 export --backup
sed -n '/^peer:/,/^global:/p' "$dir/out" >"$dir/peers" &&
	mv "$dir/peers" "$dir/out"
same out <<END
peer:
-     primary nid: 10.0.0.5@tcp
      Multi-Rail: true
      peer ni:
      -     nid: 10.0.0.5@tcp
-     primary nid: 10.0.0.7@tcp
      Multi-Rail: true
      peer ni:
      -     nid: 10.0.0.7@tcp
global:
END
ctl 0 global show
has out "retry_count: 2"
ctl 234 import "$dir/mixed" --ignore_errors=1
has err "option '--ignore_errors' doesn't allow an argument"
ctl 234 import --del --ignore_errors "$dir/mixed"
has err "peer 2: cannot parse NID 'nonsense'"
has err "peer 3: cannot del peer 10.0.0.6@tcp: no such peer was configured"
ctl 0 export --backup
mv "$dir/out" "$dir/peers"
run 1 grep "^peer:" "$dir/peers"
printf 'global:\n    transaction_timeout: 70\n' >"$dir/good"
ctl 0 import --add "$dir/good"
ctl 0 global show
has out "transaction_timeout: 70"
ctl 0 import --show "$dir/good"
has out "^global:\$"
printf 'ping:\n    - primary nid: 0@lo\n' >"$dir/good"
ctl 0 import --exec "$dir/good"
has out "^ping:\$"
ctl 0 import </dev/null
if [ -e /dev/full ]; then
	ctl 228 export /dev/full
	has err "^lnetctl: /dev/full: No space left on device"
	run 1 bash -c '"$1" net show >/dev/full' - "$lnetctl"
	has err "^lnetctl: stdout: No space left on device"
fi

# ---- what the node is not asked for ----

while read -r command; do
	read -r -a words <<<"$command"
	ctl 161 "${words[@]}" --help
	silent out
	has err "^      errno: -95\$"
	has err "^      descr: ! \"only for kernel nodes: .*here.*\"\$"
	# And nobody is led to it.
	ctl 0 --help
	expect "$command: not in the help" test -z "$(grep "$command" "$dir/out")"
	ctl 0 --list-commands
	expect "$command: not in the list" test -z "$(grep "$command" "$dir/out")"
done <<END
service-id
setup-mrrouting
setup-sysctl
END
ctl 0 cpt-of-nid 10.0.0.6@tcp 10.0.0.7@tcp
mv "$dir/out" "$dir/words"
ctl 0 cpt-of-nid --nid 10.0.0.6@tcp,10.0.0.7@tcp
same out <"$dir/words"
ctl 0 cpt-of-nid --nid 10.0.0.6@tcp 10.0.0.7@tcp
same out <<END
cpt-of-nid:
- nid: 10.0.0.6@tcp
  cpt: 0
- nid: 10.0.0.7@tcp
  cpt: 0
END
# In columns, as that of kernel nodes.
ctl 0 fault --list-commands
same out <<END
add                 del                 reset               show
drop                delay               duplicate           corrupt
error
END
ctl 255 nonsense
same err <<END
lnetctl: 'nonsense' is not a valid command. See 'lnetctl --list-commands'.
END
ctl 255 net nonsense
# What was probably meant is said.
ctl 255 discovr
has err "^Did you mean 'discover'\?\$"
ctl 255 net shwo
has err "^Did you mean 'show'\?\$"
ctl 255 set retry_cuont 1
has err "^Did you mean 'retry_count'\?\$"
ctl 255 set disc 1
has err "^Did you mean 'discovery'\?\$"
ctl 234 net show --verbos-e
has err "^Did you mean '--verbose'\?\$"
ctl 234 net
has err "usage: lnetctl net add"
has err "usage: lnetctl net del"
# Help is about the command that was meant, and no other.
ctl 234 net add
has err "missing: --net"
has err "^usage: lnetctl net add "
expect "no other command's help" test "$(grep -c '^usage:' "$dir/err")" = 1
ctl 234 net show --nonsense
has err "lnetctl net show: unrecognized option '--nonsense'"
ctl 234 --nonsense
ctl 0 net --help
has out "usage: lnetctl net add"
ctl 0 --help
has out "usage: lnetctl"
ctl 0 --version
has out "^lnetctl \(ulnet\) [0-9]"
mv "$dir/out" "$dir/version"
ctl 0 --socket "$dir/none" version
same out <"$dir/version"
ctl 234 version now
has err "^lnetctl version: unexpected argument: now\$"
ctl 0 version --help
has out "^usage: lnetctl version\$"
for sub in "net add --net" "ping" "set" "set retry_count" "net del"; do
	read -r -a words <<<"$sub"
	ctl 234 "${words[@]}"
	has err "^usage: lnetctl ${words[0]}"
	silent out
done

# ---- a session ----

printf '%s\n' 'net show' '' '# comment' 'nonsense' '"net" show --net lo' \
	quit 'ping 0@lo' >"$dir/script"
run 0 bash -c '"$1" <"$2"' - "$lnetctl" "$dir/script"
expect "two answers" test "$(grep -c '^net:' "$dir/out")" = 2
has err "'nonsense' is not a valid command"
expect "no prompt" test -z "$(grep '>' "$dir/out")"
run 254 bash -c 'printf "net show --net carrier" | "$1"' - "$lnetctl"
run 234 bash -c 'printf "net show \"" | "$1"' - "$lnetctl"
has err "a quote is not closed"
run 0 bash -c 'echo help | "$1"' - "$lnetctl"
has out "net show"
run 0 "$lnetctl" </dev/null
silent out

if command -v script >/dev/null; then
	run 255 script -qec "$lnetctl" /dev/null < <(printf 'ping\nnonsense\n')
	has out "^lnetctl > "
	has out "'nonsense' is not a valid command"
fi

# ---- a node that does not answer ----

kill -STOP "${pids[a]}"
ctl 146 --timeout 1 net show
silent out
has err "^lnetctl: $dir/lnetd.sock: no answer within 1 s: .* may or may not"
ctl 146 --timeout 1 ping --timeout 2 0@lo
has err "^lnetctl: .*: no answer within 3 s: "
kill -CONT "${pids[a]}"
ctl 0 --timeout 0 net show
for wrong in -1 86401 '' 1s; do
	ctl 234 --timeout "$wrong" net show
	has err "^lnetctl: --timeout ${wrong:-''}: a number from 0 to 86400"
done

# Its queue of connections is full: that takes 10 s.
full_queue() {
	exec perl -MIO::Socket::UNIX -e '
		my $s = IO::Socket::UNIX->new(Listen => 1, Local => $ARGV[0])
			or die;
		my @c = map { IO::Socket::UNIX->new(Peer => $ARGV[0],
			Blocking => 0) } 1 .. 4;
		print "full\n"; close STDOUT; sleep 300' "$dir/full"
}
if command -v perl >/dev/null && start full full_queue; then
	ctl 146 --socket "$dir/full" --timeout 1 net show
	silent out
	has err "^lnetctl: $dir/full: Connection timed out: .*is it stopped"
	kill "${pids[full]}"
	unset "pids[full]"
fi

# ---- two sockets, and none ----

ctl 234 --socket '' net show
has err "^lnetctl: --socket '': a text is expected"

need_lnetd b --socket "$dir/b"
ctl 0 --socket "$dir/b" set transaction_timeout 65
ctl 0 --socket="$dir/b" global show
has out "transaction_timeout: 65"
ctl 0 global show
has out "transaction_timeout: 70"
stop_lnetd b
ctl 254 --socket "$dir/b" net show
silent out
has err "^lnetctl: $dir/b: No such file or directory: .*lnetd"
run 254 env ULNET_SOCKET="$dir/c" "$lnetctl" net show
has err "^lnetctl: $dir/c: "
finish
