#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What one node exports, and a fresh one imports, is what that one exports:
# nothing that can be configured is lost on the way (requirement H1).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

# The same addresses for all of the nodes, so each has a port of its own.
fresh() { # NAME [ARGUMENT...]
	local port

	free_port port || skip "perl cannot find a free port"
	need_lnetd "$1" --port "$port" --socket "$dir/$1.sock" "${@:2}"
}

at() { # NAME STATUS ARGUMENT...
	ctl "$2" --socket "$dir/$1.sock" "${@:3}"
}

# The export of that node is what is in the file.
exports() { # NAME FILE [OPTION]
	at "$1" 0 export ${3:+"$3"}
	silent err
	same out <"$dir/$2"
}

# ---- the examples of lnet.conf(5) ----

# Those of the page, with interfaces that are here.
example() { # N
	awk -v n="$1" '/^\.Sh EXAMPLES/ { in_it = 1 }
		in_it && /^\.Bd/ { i++; on = i == n; next }
		/^\.Ed/ { on = 0 } on' "${srcdir:-.}/man/man5/lnet.conf.5" |
		sed 's/eth0/127.0.0.1/; s/eth1/127.0.0.2/; s/192\.168\.7\.2/127.0.0.3/'
}

for n in 1 2; do
	example $n >"$dir/example"
	fresh ex --config "$dir/example"
	at ex 0 export --backup
	grep -oE '^[a-z]+:' "$dir/example" >"$dir/sections"
	expect "example $n: its sections" \
		test "$(grep -cxFf "$dir/sections" "$dir/out")" = \
		"$(wc -l <"$dir/sections")"
	expect "example $n: two interfaces" test "$(grep -c ' 127\.' "$dir/out")" = 2
	stop_lnetd ex
done
expect "example 2: two peers" test "$(grep -c 'primary nid' "$dir/out")" = 2
# A router.
example 3 >"$dir/example"
fresh ex --config "$dir/example"
at ex 0 export --backup
for section in net route routing buffers global udsp; do
	has out "^$section:\$"
done
has out '^      hop: 1$'
has out '^    - enable: 1$'
has out '^    large: 2048$'
has out '^ *src: tcp1$'
has out '^ *rte: 10\.0\.1\.4@tcp2$'
stop_lnetd ex
# Of the networks for many hosts, those that are for this one.
example 4 | sed 's/10\.0\.\*\.\*/127.0.0.1/' >"$dir/example"
fresh ex --config "$dir/example"
at ex 0 export --backup
expect "example 4: one network" test "$(grep -c 'net type: tcp' "$dir/out")" = 1
has out '^ *peer_credits: 16$'
has out ' rule_type: drop$'
has out '^ *rate: 100$'
stop_lnetd ex
# Rules for who may call: lnetd has no services, and nothing to export of them.
example 5 >"$dir/example"
run 0 grep -x 'rpc:' "$dir/example"
example 6 >"$dir/out"
silent out

# ---- a node on which nothing is as it was at first ----

# The TCP LND's tunables; tls needs keys (tls.sh).
tunables=$(grep -vE '^TUNABLE\(tls,' "${srcdir:-.}/lnd/socklnd/tunable.def")

# name: value, of each of them, beside its default.
others() {
	sed -nE 's/^TUNABLE\(([a-z_]+), "[^"]*", (-?[0-9]+), ([0-9]+), (-?[0-9]+),.*/\1 \3 \4/p' \
		<<<"$tunables" |
		while read -r name max def; do
			echo "$name: $((def < max ? def + 1 : def - 1))"
		done | paste -sd ,
}

fresh a
cat >"$dir/nets" <<END
net:
    - net type: tcp
      local NI(s):
      - interfaces: {0: 127.0.0.1}
        tunables: {peer_timeout: 100, peer_credits: 9, peer_buffer_credits: 10, credits: 300}
        lnd tunables: {$(others)}
END
at a 0 import "$dir/nets"
at a 0 net add --net tcp --if 127.0.0.2 --peer-timeout 0 --conns-per-peer 3 --tos 8
at a 0 net add --nid 127.0.0.3@tcp1
if grep -qs ' lo$' /proc/net/if_inet6; then
	at a 0 net add --nid ::1@tcp2 --peer-credits 7
	at a 0 route add --net o2ib4 --gateway 2001:db8::9@tcp2 --hop-count 255
fi
at a 0 peer add --prim_nid 10.0.0.5@tcp --nid 10.0.1.5@tcp1,10.0.2.5@tcp
at a 0 peer add --prim_nid 10.0.0.6@tcp --non_mr
at a 0 peer add --prim_nid 2001:db8::8@tcp --nid 10.0.0.8@tcp
at a 0 route add --net tcp3 --gateway 10.0.0.6@tcp
at a 0 route add --net tcp3 --gateway 10.0.0.9@tcp1 --hop 2 --priority 3
at a 0 udsp add --src 'o2ib[1-3]' --priority 2
at a 0 udsp add --src 127.0.0.1@tcp --dst '10.0.*.5@tcp' --idx 0
at a 0 udsp add --dst tcp9 --rte 10.0.0.6@tcp
at a 0 tls set --name '*' --nids '10.9.0.[2-5]@tcp'
at a 0 tls set --name 'node7.site' --nids '10.0.0.7@tcp 10.0.1.7@tcp1 *@o2ib'
at a 0 peer add --prim_nid 10.0.0.7@tcp1 --nid 10.0.1.7@tcp --non_mr
while read -r name value; do
	at a 0 set "$name" "$value"
done <<'END'
numa_range 1
max_interfaces 201
discovery 2
drop_asym_route 1
router_sensitivity 50
routing 1
tiny_buffers 8
small_buffers 9
large_buffers 2
transaction_timeout 51
retry_count 3
health_sensitivity 101
response_tracking 2
recovery_limit 5
max_recovery_ping_interval 901
health_gain 7
busy_poll 20
wait_poll 30
large_nids 1
alive_router_check_interval 61
END
at a 0 fault drop add -s '*@tcp' -d 127.0.0.1@tcp -i 0.5 -e random
at a 0 fault delay add -m PUT -m GET -p 4,26 -r 10 -l 0.25 -o 127.0.0.2@tcp
at a 0 fault duplicate add -x -n
at a 0 fault corrupt add -r 3
at a 0 fault error add -r 7 -e local_error,remote_dropped

# Each setting is another than at first, but for those that have one value.
# The level of the log is the process's, and not exported.
at a 0 global show
grep -v '^    log: ' "$dir/out" >"$dir/global"
fresh b
at b 0 global show
grep -xFf "$dir/global" "$dir/out" >"$dir/fixed" && mv "$dir/fixed" "$dir/out"
same out <<END
global:
    recovery_interval: 1
END
at a 0 net show -v --net tcp
expect "all tunables" test "$(sed -n '/lnd tunables/,/dev cpt/p' "$dir/out" |
	sed '/dev cpt/q' | grep -cE "$(others | sed 's/: -\?[0-9]*,\?/|/g; s/|$//')")" = \
	"$(grep -c '^TUNABLE' <<<"$tunables")"

# ---- there and back ----

at a 0 export --backup "$dir/backup"
at a 0 export "$dir/plain"
# All sections are there, and what was said of a route.
run 0 grep -E '^[a-z]|^ *(hop: 2|priority: 3|tiny: 8)$' "$dir/backup"
same out <<'END'
net:
route:
      hop: 2
      priority: 3
routing:
buffers:
    tiny: 8
peer:
global:
udsp:
ulnet:
tls:
fault:
END
# What kernel nodes do not know is behind what they know, and in "global" there
# is none of it; in a backup for them it is nowhere.
same_global() { # FILE
	sed -n '/^global:/,/^[^g ]/{s/: .*//p}' "$1" >"$dir/out"
	same out <<'END'
    numa_range
    max_interfaces
    discovery
    drop_asym_route
    retry_count
    transaction_timeout
    health_sensitivity
    recovery_interval
    router_sensitivity
    lnd_timeout
    response_tracking
    recovery_limit
    max_recovery_ping_interval
END
}
same_global "$dir/backup"
same_global "$dir/plain"
at a 0 export --kernel "$dir/kernel"
same_global "$dir/kernel"
run 0 grep -E '^[a-z]' "$dir/kernel"
same out <<'END'
net:
route:
peer:
global:
routing:
buffers:
udsp:
END
own=$(sed -nE 's/^TUNABLE\(([a-z_]+),.*/\1/p' <<<"$tunables" |
	grep -vxE 'conns_per_peer|timeout|tos' | paste -sd '|')
run 0 grep -E "^ *($own): " "$dir/backup"
run 1 grep -E "^ *($own): " "$dir/kernel"
fresh k
at k 0 import "$dir/kernel"
silent err
stop_lnetd k
# A backup of a node at its defaults has nothing of it.
fresh e
at e 0 export --backup "$dir/defaults"
stop_lnetd e
expect "nothing that kernel nodes refuse" test "$(grep -cE '^(ulnet|tls|fault|udsp)' \
	"$dir/defaults")" = 0
at b 0 import "$dir/backup"
silent err
exports b backup --backup
# What is shown of a node besides its configuration does no harm.
fresh c
at c 0 import "$dir/plain"
silent err
exports c backup --backup
# Their gateways have been asked how they are, as often as there was time for, and do
# not answer.
uncounted() { # NAME
	local sock=$dir/$1.sock

	ctl_until '^      state: down$' --socket "$sock" route show -v --net tcp3 \
		--gateway 10.0.0.6@tcp
	ctl_until '^      state: down$' --socket "$sock" route show -v --net tcp3 \
		--gateway 10.0.0.9@tcp1
	at "$1" 0 export
	sed -i -E 's/: [0-9]+$/: n/' "$dir/out"
}
uncounted b
cp "$dir/out" "$dir/plain_b"
uncounted c
same out <"$dir/plain_b"
# At the start of a node.
fresh d --config "$dir/backup"
exports d backup --backup
# To a node with more CPTs, and to one with fewer: but for their lists all is
# the same.
fresh two --cpts 2
at two 0 import "$dir/backup"
same err <<'END'
# net: CPTs [0] are passed over: all CPTs use each interface
END
at two 0 export --backup "$dir/backup2"
expect "two CPTs" test "$(grep -c 'CPT: "\[0,1\]"$' "$dir/backup2")" = \
	"$(grep -c 'CPT: "\[0\]"$' "$dir/backup")"
sed 's/CPT: "\[0,1\]"$/CPT: "[0]"/' "$dir/backup2" >"$dir/out"
same out <"$dir/backup"
fresh one
at one 0 import "$dir/backup2"
silent err
exports one backup --backup
# From the command line, too.
at two 0 net add --net tcp8 --if '127.0.0.2[0,1]' --cpt 0-1
silent err
at two 0 net add --net tcp9 --if '127.0.0.2[0]' --cpt 1
same err <<'END'
# net: CPTs 1 are passed over: all CPTs use each interface
# net: CPTs [0] are passed over: all CPTs use each interface
END
stop_lnetd two
stop_lnetd one
# At the start of a node, in the strings of kernel modules.
fresh two --cpts 2 --net 'tcp(127.0.0.1[0])[1],tcp1(127.0.0.1)' \
	--ip2nets 'tcp2(lo)[0] 127.0.0.1'
at two 0 net show
expect "networks with CPTs" test "$(grep -c ' nid: 127' "$dir/out")" = 3
stop_lnetd two
# When LNet was down.
at d 0 lnet unconfigure
at d 0 lnet configure --all
exports d backup --backup

# Health is a state: it is shown, and not taken over.
at a 0 peer set --nid 10.0.1.5@tcp1 --health 200
at a 0 export "$dir/ill"
run 0 grep '^ *health value: 200$' "$dir/ill"
fresh e
at e 0 import "$dir/ill"
exports e backup --backup
at e 0 peer show -v 2 --nid 10.0.1.5@tcp1
expect "no health from a file" \
	test "$(grep -c '^ *health value: 1000$' "$dir/out")" = 3

# ---- and away again ----

# All but the settings goes, which have no other value to go to; the numbers of
# buffers are some, too.
at b 0 import --del "$dir/backup"
silent err
at b 0 export --backup
{
	printf 'routing:\n    - enable: 0\n'
	printf 'buffers:\n    tiny: 8\n    small: 9\n    large: 2\n'
	sed 's/^    health_gain:/ulnet:\n&/' "$dir/global"
} >"$dir/rest"
same out <"$dir/rest"
finish
