#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnetctl's commands with arguments that are wrong, missing or too many: each
# ends with one error, which names what is wrong, and changes nothing. And with
# each of their options as it should be. At the end the help of all commands is
# asked whether one was forgotten.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
need_lnetd a --net 'tcp(127.0.0.1),tcp1(127.0.0.3)' --port "$port"
ctl 0 peer add --prim_nid 10.0.0.5@tcp --nid 10.0.1.5@tcp1
ctl 0 fault drop add --source 10.0.0.5@tcp --dest 127.0.0.1@tcp --rate 1000

# What is configured now.
configured() { # FILE
	"$lnetctl" export --backup >"$1" || complain "export fails"
}

# The last command was refused, and that is all.
refused() { # PATTERN
	has err "$1"
	expect "$ran: one error" \
		test "$(grep -cE '^lnetctl|^ *errno:' "$dir/err")" = 1
	configured "$dir/after"
	expect "$ran: nothing is changed" cmp -s "$dir/before" "$dir/after"
}

# ---- wrong: exit status, what the error says, the arguments ----

cat >"$dir/wrong" <<'END'
234 | lnetctl lnet: missing: a sub-command | lnet
255 | 'up' is not a valid command | lnet up
234 | unexpected argument: now | lnet configure now
234 | unrecognized option '--nope' | lnet configure --nope
240 | LNet configure error: Object busy | lnet configure --large
240 | LNet configure error: Object busy | lnet configure --all
234 | unexpected argument: now | lnet unconfigure now
234 | unrecognized option '--all' | lnet unconfigure --all
255 | 'list' is not a valid command | net list
234 | unexpected argument: tcp | net show tcp
234 | option '--net' requires an argument | net show --net
254 | cannot parse net '' | net show --net ''
254 | cannot parse net 'tcp,tcp1' | net show --net tcp,tcp1
254 | cannot parse net '127.0.0.50@tcp': it is a NID on net 'tcp' | net show --net 127.0.0.50@tcp
234 | verbose: -1 is not in 0 | net show --verbose -1
255 | cannot parse verbose value | net show --verbose=high
234 | missing: --net or --nid or --ip2net | net add
234 | missing: --net | net add --if 127.0.0.4
234 | neither an interface nor a NID is given | net add --net tcp
234 | neither an interface nor a NID is given | net add --net tcp --if ''
234 | option '--if' requires an argument | net add --net tcp --if
234 | unexpected argument: now | net add --net tcp2 --if 127.0.0.4 now
254 | cannot parse net 'tpc' | net add --net tpc --if 127.0.0.4
234 | net lo is always there | net add --net lo --if lo
163 | no LND of this build serves net gni | net add --net gni --if ipogif0
156 | tcp2\(none0\): no such interface | net add --net tcp2 --if 127.0.0.4,none0
239 | tcp\(127.0.0.1\): File exists | net add --net tcp --if 127.0.0.1
239 | tcp2\(127.0.0.4\): File exists | net add --net tcp2 --if 127.0.0.4,127.0.0.4
234 | either interfaces or nid is needed | net add --net tcp --if 127.0.0.4 --nid 127.0.0.5@tcp
234 | NID '127.0.0.4@tcp1' is on another net | net add --net tcp --nid 127.0.0.4@tcp1
156 | cannot add network 10.77.7.7@tcp: the interface has no address | net add --nid 10.77.7.7@tcp
234 | cannot parse NID 'nonsense' | net add --nid nonsense
234 | 'tcp1': at character 5: a range of addresses is expected | net add --ip2net tcp1
234 | 'tpc 127.0.0.1': at character 1: no such net: tpc | net add --ip2net 'tpc 127.0.0.1'
234 | 'tcp1 127.0.0.300': at character 14: | net add --ip2net 'tcp1 127.0.0.300'
254 | no rule matches an address of this host | net add --ip2net 'tcp1 127.9.9.9'
234 | 'net' does not go with ip2net, which names the networks | net add --ip2net 'tcp1 127.0.0.1' --net tcp1
234 | option '--ip2net' requires an argument | net add --ip2net
234 | peer_timeout: -2 is not in -1 | net add --net tcp2 --if 127.0.0.4 --peer-timeout -2
234 | peer_credits: 65536 is not in -1..65535 | net add --net tcp2 --if 127.0.0.4 --peer-credits 65536
234 | peer_buffer_credits: 65536 is not in -1..65535 | net add --net tcp2 --if 127.0.0.4 --peer-buffer-credits 65536
255 | cannot parse credits value | net add --net tcp2 --if 127.0.0.4 --credits many
234 | cannot parse CPTs 'x' | net add --net tcp2 --if 127.0.0.4 --cpt x
234 | cannot parse CPTs '\[1-0\]' | net add --net tcp2 --if 127.0.0.4 --cpt '[1-0]'
234 | is not the name of an interface | net add --net tcp2 --if '127.0.0.4[0'
234 | conns_per_peer: 128 is not in 0..127 | net add --net tcp2 --if 127.0.0.4 --conns-per-peer 128
234 | tos: 256 is not in -1..255 | net add --net tcp2 --if 127.0.0.4 --tos 256
234 | tls: required or off is expected | net add --net tcp2 --if 127.0.0.4 --tls perhaps
161 | auth_key: not supported: only networks of type kfi | net add --net tcp2 --if 127.0.0.4 --auth-key 1
161 | traffic_class: not supported: only networks of type kfi | net add --net tcp2 --if 127.0.0.4 --traffic-class 1
234 | neither an interface nor a NID is given | net add --net tcp2 --skip-mr-route-setup
234 | missing: --net or --nid | net del
234 | missing: --net or --nid | net del --if 127.0.0.1
234 | unexpected argument: now | net del --net tcp now
254 | cannot parse net 'nonsense' | net del --net nonsense
234 | net lo is always there | net del --net lo
234 | cannot del network: no tcp7 | net del --net tcp7
234 | cannot del network: no tcp\(none0\) | net del --net tcp --if 127.0.0.1,none0
234 | NID '127.0.0.3@tcp1' is on another net | net del --net tcp --nid 127.0.0.3@tcp1
234 | cannot del network: no 127.0.0.9@tcp | net del --nid 127.0.0.9@tcp
234 | cannot del network: no 0@lo | net del --nid 0@lo
234 | either interfaces or nid is needed | net del --net tcp --if 127.0.0.1 --nid 127.0.0.1@tcp
234 | missing: --nid or --all or --net | net set
234 | missing: --nid or --all or --net | net set --health 5
234 | health is missing | net set --nid 127.0.0.1@tcp
234 | option '--health' requires an argument | net set --all --health
255 | cannot parse health value | net set --all --health good
234 | health: -1 is not in 0..1000 | net set --all --health -1
234 | health: 1001 is not in 0..1000 | net set --nid 127.0.0.1@tcp --health 1001
234 | either nid or all is needed | net set --all --nid 127.0.0.1@tcp --health 5
234 | cannot parse NID 'nonsense' | net set --nid nonsense --health 5
234 | 0@lo has no health | net set --nid 0@lo --health 5
254 | cannot set the health of 127.0.0.9@tcp: no such NID here | net set --nid 127.0.0.9@tcp --health 5
234 | unexpected argument: now | net set --all --health 5 now
254 | cannot set the health of tcp9: no such network here | net set --net tcp9 --health 5
161 | conns_per_peer cannot be set | net set --all --conns-per-peer 2
161 | lnd_timeout cannot be set | net set --all --lnd-timeout 2
234 | lnetctl peer: missing: a sub-command | peer
255 | 'lsit' is not a valid command | peer lsit
234 | unexpected argument: now | peer list now
234 | unrecognized option '--nid' | peer list --nid 10.0.0.5@tcp
234 | unexpected argument: now | peer show now
234 | option '--nid' requires an argument | peer show --nid
254 | cannot get peer information of 10.0.0.99@tcp: no such peer | peer show --nid 10.0.0.99@tcp
234 | cannot parse NID '10.0.0.5@tcp,10.0.1.5@tcp1' | peer show --nid 10.0.0.5@tcp,10.0.1.5@tcp1
234 | cannot parse NID '\*' | peer show --nid '*'
234 | verbose: -1 is not in 0 | peer show --verbose -1
234 | missing: --prim_nid | peer add
234 | missing: --prim_nid | peer add --nid 10.0.0.9@tcp
234 | missing: --prim_nid | peer add --non_mr
234 | option '--prim_nid' requires an argument | peer add --prim_nid
234 | unexpected argument: now | peer add --prim_nid 10.0.0.9@tcp now
234 | cannot parse NID '10.0.0.\[1-3\]@tcp' | peer add --prim_nid 10.0.0.[1-3]@tcp
234 | no peer has NID '0@lo' | peer add --prim_nid 0@lo
234 | cannot add peer 127.0.0.1@tcp: that is a NID of this node | peer add --prim_nid 127.0.0.1@tcp
234 | cannot add NID 127.0.0.3@tcp1 to peer 10.0.0.9@tcp: that is a NID of this node | peer add --prim_nid 10.0.0.9@tcp --nid 10.0.0.8@tcp,127.0.0.3@tcp1
234 | cannot add NID 127.0.0.1@tcp to peer 10.0.0.5@tcp: that is a NID of this node | peer add --prim_nid 10.0.0.5@tcp --nid 10.0.0.8@tcp,127.0.0.1@tcp
234 | cannot parse NID 'nonsense' | peer add --prim_nid 10.0.0.9@tcp --nid 10.0.0.8@tcp,nonsense
239 | cannot add NID 10.0.1.5@tcp1 to peer 10.0.0.9@tcp: another configured peer has it | peer add --prim_nid 10.0.0.9@tcp --nid 10.0.0.8@tcp,10.0.1.5@tcp1
239 | cannot add peer 10.0.1.5@tcp1: another configured peer has it | peer add --prim_nid 10.0.1.5@tcp1 --nid 10.0.7.5@tcp
234 | missing: --prim_nid | peer add --lock_prim
249 | .10.\*.\*.\*@tcp.*: ranges of more than 256 NIDs | peer add --prim_nid 10.0.0.9@tcp --ip2nets '10.*.*.*@tcp'
234 | missing: --prim_nid | peer del
234 | missing: --prim_nid | peer del --nid 10.0.1.5@tcp1
234 | missing: --prim_nid | peer del --force
234 | unexpected argument: now | peer del --prim_nid 10.0.0.5@tcp now
254 | cannot del peer 10.0.0.77@tcp: no such peer was configured | peer del --prim_nid 10.0.0.77@tcp
254 | cannot del peer 10.0.1.5@tcp1: no such peer was configured | peer del --prim_nid 10.0.1.5@tcp1
254 | cannot del NID 10.0.9.9@tcp from peer 10.0.0.5@tcp: the peer has not got it | peer del --prim_nid 10.0.0.5@tcp --nid 10.0.1.5@tcp1,10.0.9.9@tcp
234 | cannot parse NID 'nonsense' | peer del --prim_nid 10.0.0.5@tcp --nid nonsense
234 | missing: --prim_nid | peer del --lock_prim
234 | cannot parse NID '10.0.\[1@tcp' | peer del --prim_nid 10.0.0.5@tcp --ip2nets '10.0.[1@tcp'
234 | missing: --nid or --all | peer set
234 | missing: --nid or --all | peer set --health 5
234 | health is missing | peer set --all
234 | health: 1001 is not in 0..1000 | peer set --nid 10.0.0.5@tcp --health 1001
234 | either nid or all is needed | peer set --all --nid 10.0.0.5@tcp --health 5
254 | cannot set the health of 10.0.0.77@tcp: no such NID here | peer set --nid 10.0.0.77@tcp --health 3
234 | unexpected argument: now | peer set --all --health 5 now
161 | state cannot be set | peer set --nid 10.0.0.5@tcp --state 273
234 | lnetctl path: missing: a sub-command | path
255 | 'list' is not a valid command | path list
234 | missing: --nid | path show
234 | missing: --nid | path show --source 127.0.0.1@tcp
234 | option '--nid' requires an argument | path show --nid
234 | cannot parse NID 'nonsense@' | path show --nid nonsense@
234 | cannot parse NID 'nonsense' | path show --nid 10.0.0.5@tcp --source nonsense
234 | unexpected argument: now | path show --nid 10.0.0.5@tcp now
234 | missing: SETTING VALUE | set
234 | missing: SETTING VALUE | set retry_count
234 | unexpected argument: 4 | set retry_count 3 4
234 | unrecognized option '--all' | set --all 1
255 | 'retry_cuont' is not a valid command | set retry_cuont 1
255 | cannot parse retry_count value | set retry_count ''
195 | configure retry count: transaction_timeout has to be more than | set retry_count 50
195 | configure transaction timeout: transaction_timeout has to be more than | set transaction_timeout 2
195 | configure transaction timeout: Invalid argument \(1..2147483647\) | set transaction_timeout 0
195 | configure discovery: Invalid argument \(0..2\) | set discovery 3
195 | configure response tracking: Invalid argument \(0..3\) | set response_tracking 4
195 | configure recovery limit: Invalid argument \(0..2147483647\) | set recovery_limit -2
195 | configure max recovery ping interval: Invalid argument \(1..2147483647\) | set max_recovery_ping_interval 0
195 | configure health sensitivity: Invalid argument \(0..1000\) | set health_sensitivity 1001
195 | configure health gain: Invalid argument \(0..1000\) | set health_gain -1
195 | configure numa range: Invalid argument \(0..2147483647\) | set numa_range -1
195 | configure max interfaces: Invalid argument \(1..40000\) | set max_interfaces 0
195 | configure busy poll: Invalid argument \(0..1000000\) | set busy_poll -1
195 | configure large nids: Invalid argument \(0..1\) | set large_nids 2
195 | configure alive router check interval: Invalid argument \(1..2147483647\) | set alive_router_check_interval 0
195 | configure use tcp bonding: not in 0..1 | set use_tcp_bonding 2
195 | configure log: err, warn, info or debug is expected | set log verbose
195 | configure log: err, warn, info or debug is expected | set log 3
195 | configure drop asym route: Invalid argument \(0..1\) | set drop_asym_route 2
161 | configure recovery interval: without effect: the longer .* between its pings | set recovery_interval 5
195 | configure router sensitivity: Invalid argument \(0..100\) | set router_sensitivity 101
195 | configure routing: not in 0..1 | set routing 2
195 | configure tiny buffers: not in 0..2147483647 | set tiny_buffers -1
195 | configure small buffers: not in 0..2147483647 | set small_buffers -1
195 | configure large buffers: not in 0..2147483647 | set large_buffers -2
234 | lnetctl udsp: missing: a sub-command | udsp
234 | missing: --src | udsp add
234 | option '--src' requires an argument | udsp add --src
234 | option '--dst' requires an argument | udsp add --dst
234 | rte: goes with dst | udsp add --rte 127.0.0.9@tcp
234 | cannot add udsp: src: | udsp add --src nonsense
234 | cannot add udsp: dst: range low end | udsp add --dst '127.0.0.[9-1]@tcp'
234 | src: NIDs are expected of a pair | udsp add --src tcp --dst 127.0.0.9@tcp
255 | cannot parse priority value | udsp add --src tcp --priority best
234 | priority: -2 is not in | udsp add --src tcp --priority -2
234 | idx: 4294967295 is not in | udsp add --src tcp --idx 4294967295
234 | priority: -1 is not in | udsp add --src tcp --priority -1
234 | unexpected argument: now | udsp add --src tcp now
234 | missing: --idx | udsp del
254 | cannot del udsp: No such file or directory | udsp del --idx 5
255 | cannot parse idx value | udsp del --idx first
234 | unexpected argument: now | udsp del --all now
255 | cannot parse idx value | udsp show --idx first
234 | unexpected argument: now | udsp show now
234 | lnetctl tls: missing: a sub-command | tls
234 | missing: --name | tls set
234 | missing: --name | tls set --nids 127.0.0.9@tcp
234 | nids is missing | tls set --name a
234 | cannot set tls rule 'a': nids: range low end | tls set --name a --nids '127.0.0.[9-1]@tcp'
234 | cannot set tls rule 'a b': name: it has letters, digits | tls set --name 'a b' --nids '*@tcp'
220 | cannot set tls rule .*: name: longer than 255 | tls set --name "$(printf 'n%0300d' 0)" --nids '*@tcp'
234 | unexpected argument: now | tls set --name a --nids '*@tcp' now
234 | missing: --name | tls del
254 | cannot del tls rule 'a': there is no rule with this name | tls del --name a
234 | unexpected argument: now | tls del --all now
234 | unexpected argument: now | tls show now
234 | option '--name' requires an argument | tls show --name
234 | lnetctl route: missing: a sub-command | route
255 | 'list' is not a valid command | route list
234 | missing: --net | route add
234 | missing: --net | route add --gateway 127.0.0.9@tcp
234 | gateway is missing | route add --net tcp5
234 | option '--gateway' requires an argument | route add --net tcp5 --gateway
234 | unexpected argument: now | route add --net tcp5 --gateway 127.0.0.9@tcp now
254 | cannot parse net 'tpc' | route add --net tpc --gateway 127.0.0.9@tcp
234 | cannot parse NID 'nonsense' | route add --net tcp5 --gateway nonsense
234 | hop: 0 is not in 1..255 | route add --net tcp5 --gateway 127.0.0.9@tcp --hop 0
234 | hop: 256 is not in -1..255 | route add --net tcp5 --gateway 127.0.0.9@tcp --hop-count 256
234 | priority: -1 is not in 0 | route add --net tcp5 --gateway 127.0.0.9@tcp --priority -1
161 | health_sensitivity 7 of a route: not supported | route add --net tcp5 --gateway 127.0.0.9@tcp --health_sensitivity 7
234 | cannot add route to tcp by 127.0.0.9@tcp: the network is local | route add --net tcp --gateway 127.0.0.9@tcp
234 | cannot add route to tcp5 by 127.0.0.1@tcp: the network is local, or the gateway is no other node | route add --net tcp5 --gateway 127.0.0.1@tcp
143 | cannot add route to tcp5 by 127.0.0.9@tcp7: No interface configured on the same net | route add --net tcp5 --gateway 127.0.0.9@tcp7
234 | missing: --net | route del
234 | missing: --net | route del --gateway 127.0.0.9@tcp
234 | gateway is missing | route del --net tcp5
254 | cannot delete route to tcp5 by 127.0.0.9@tcp: there is no such route | route del --net tcp5 --gateway 127.0.0.9@tcp
234 | unexpected argument: now | route show now
254 | cannot parse net 'tpc' | route show --net tpc
234 | cannot parse NID 'nonsense' | route show --gateway nonsense
234 | hop: 256 is not in -1..255 | route show --hop 256
255 | cannot parse priority value | route show --priority best
234 | verbose: -1 is not in 0 | route show --verbose -1
234 | lnetctl routing: missing: a sub-command | routing
234 | unexpected argument: now | routing show now
234 | lnetctl global: missing: a sub-command | global
255 | 'list' is not a valid command | global list
234 | unexpected argument: now | global show now
234 | lnetctl stats: missing: a sub-command | stats
255 | 'list' is not a valid command | stats list
234 | unexpected argument: now | stats show now
234 | unexpected argument: now | stats reset now
234 | unrecognized option '--all' | stats reset --all
161 | this node runs no RPC | rpc show --verbose
161 | this node runs no RPC | rpc show --connections
161 | this node runs no RPC | rpc slow
161 | this node runs no RPC | rpc set --service echo --policy fifo
161 | this node runs no RPC | rpc set --service echo --workers-min 1
161 | this node runs no RPC | rpc set --service echo --workers-max 2
161 | this node runs no RPC | rpc set --service echo --high-ratio 3
161 | this node runs no RPC | rpc set --service echo --queue-max 4
161 | this node runs no RPC | rpc set --service echo --queue-bytes-max 5
161 | this node runs no RPC | rpc set --service echo --window 6
161 | this node runs no RPC | rpc set --service echo --segments 7
161 | this node runs no RPC | rpc set --service echo --retry-after 8
161 | this node runs no RPC | rpc set --service echo --request-limit 9
161 | this node runs no RPC | rpc set --service echo --reply-limit 10
161 | this node runs no RPC | rpc set --client echo --inflight-max 11
161 | this node runs no RPC | rpc set --client echo --queue-bytes 12
161 | this node runs no RPC | rpc set --client echo --reply-limit 12
161 | this node runs no RPC | rpc set --service echo --window-messages 13
161 | this node runs no RPC | rpc set --service echo --streams-max 14
161 | this node runs no RPC | rpc set --client echo --window-bytes 15
161 | this node runs no RPC | rpc set --client echo --patience 16
161 | this node runs no RPC | rpc set --window 5
255 | cannot parse window value | rpc set --service echo --window five
234 | unexpected argument: echo | rpc set --service echo echo
234 | unexpected argument: now | rpc slow now
234 | unexpected argument: now | rpc reset now
130 | --keys was not given | reload
234 | unexpected argument: now | reload now
161 | this node runs no RPC | rpc rules
161 | this node runs no RPC | rpc rules --clear
161 | this node runs no RPC | rpc rules --check
234 | unexpected argument: two | rpc rules one two
234 | '--check' doesn't allow an argument | rpc rules --check=1
234 | '--clear' doesn't allow an argument | rpc rules --clear=1
234 | lnetctl debug: missing: a sub-command | debug
255 | 'nets' is not a valid command | debug nets
234 | unexpected argument: now | debug recovery now
234 | unexpected argument: now | debug recovery --local --peer now
234 | missing: --nid | debug peer
234 | unexpected argument: now | debug objects now
234 | unexpected argument: 10.0.0.5@tcp | debug peer --nid 10.0.0.5@tcp 10.0.0.5@tcp
234 | cannot parse NID 'nonsense@' | debug peer --nid nonsense@
254 | cannot get peer information of 10.0.0.99@tcp: no such peer | debug peer --nid 10.0.0.99@tcp
234 | option '--interval' requires an argument | top --interval
234 | top: --interval often: a time above 0,  | top --interval often
234 | top: --count 0: a number from 1 to 1000000000 is expected | top --count 0
234 | top: --rows 1001: a number from 0 to 1000 is expected | top --rows 1001
234 | unexpected argument: b | top b
234 | metrics: --peers 10001: a number from 0 to 10000 is expected | metrics --peers 10001
234 | metrics: --listen :9988: \[ADDRESS:\]PORT is expected | metrics --listen :9988
234 | option '--listen' requires an argument | metrics --listen
234 | unexpected argument: 9988 | metrics 9988
234 | missing: NID|NAME... | ping
234 | option '--source' requires an argument | ping 0@lo --source
255 | failed to ping nonsense@: that is no NID | ping nonsense@
255 | failed to ping a,b: that is no NID | ping a,b
255 | cannot parse NID ''nonsense'' | ping --source nonsense 0@lo
255 | timeout: 0 is not in 1..3600 | ping --timeout 0 0@lo
234 | missing: NID|NAME... | discover
234 | missing: NID|NAME... | discover --force
234 | option '--timeout' requires an argument | discover 0@lo --timeout
255 | timeout: 3601 is not in 1..3600 | discover --timeout 3601 0@lo
255 | failed to discover \*@tcp: that is no NID | discover '*@tcp'
255 | failed to discover 127.0.0.1@tcp: that is a NID of this node | discover 127.0.0.1@tcp
255 | failed to discover 10.0.0.1@tcp9: No route to host | discover 10.0.0.1@tcp9
234 | unrecognized option '--nope' | import --nope
234 | unexpected argument: b | import --add a b
234 | unexpected argument: b | import --ignore_errors a b
254 | none: No such file | import none
254 | none: No such file | import --del none
254 | none: No such file | import --show none
254 | none: No such file | import --exec none
234 | unexpected argument: b | export --backup a b
234 | unexpected argument: b | export --dot a b
234 | unexpected argument: b | export --kernel a b
234 | unexpected argument: a | version a
234 | missing: add\|del\|reset\|show\|list | fault --rule_type drop
234 | missing: --nid | cpt-of-nid
234 | option '--nid' requires an argument | cpt-of-nid --nid
234 | cannot parse NID ''nonsense'' | cpt-of-nid --nid 10.0.0.5@tcp,nonsense
234 | cannot parse NID ''now'' | cpt-of-nid --nid 10.0.0.5@tcp now
234 | missing: add\|del\|reset\|show\|list | fault
234 | missing: --rule_type | fault add
234 | missing: --rule_type | fault add --rate 1
234 | unexpected argument: now | fault add --rule_type drop --rate 1 now
234 | one of rate, interval and drop_all is needed | fault add --rule_type drop
234 | source: cannot parse NID 'nonsense' | fault add --rule_type drop --rate 1 --source nonsense
234 | dest: cannot parse NID 'nonsense' | fault add --rule_type drop --rate 1 --dest nonsense
234 | local_nid: cannot parse NID 'nonsense' | fault add --rule_type drop --rate 1 --local_nid nonsense
234 | portal: a number is expected, 0 to 63 | fault add --rule_type drop --rate 1 --portal 4,64
234 | message: unknown: 'HELLO' | fault add --rule_type drop --rate 1 --message put,HELLO
234 | interval: seconds are expected | fault add --rule_type drop --interval 1e3
234 | one of rate, interval and drop_all is needed | fault add --rule_type drop --random
234 | unrecognized option '--all' | fault add --rule_type drop --rate 1 --all
234 | delay: latency is needed | fault add --rule_type delay --drop_all
234 | drop: latency is not for such rules | fault add --rule_type drop --rate 1 --latency 1
234 | error: health_error is needed | fault add --rule_type error --rate 1
234 | health_error: unknown: 'bad_mood' | fault add --rule_type error --rate 1 --health_error bad_mood
234 | missing: --rule_type | fault del
234 | missing: --rule_type | fault del --all
234 | unrecognized option '--rate' | fault del --rule_type drop --rate 1
234 | either source and dest, or all, is needed | fault del --rule_type drop --all --dest 127.0.0.1@tcp
254 | there is no such rule | fault del --rule_type delay --source 10.0.0.5@tcp --dest 127.0.0.1@tcp
234 | missing: --rule_type | fault reset
234 | rule_type: unknown: 'lose' | fault reset --rule_type lose
234 | unrecognized option '--all' | fault reset --rule_type drop --all
234 | option '--rule_type' requires an argument | fault show --rule_type
234 | unexpected argument: now | fault show --rule_type drop now
234 | missing: add\|del\|reset\|show\|list | fault drop
234 | action: unknown: ''lose'' | fault drop lose
234 | rule_type: unknown: 'lose' | fault --rule_type lose add --rate 1
END

# What is the same for all kinds of rules, with what such a rule needs.
while IFS='|' read -r kind needs; do
	cat <<END
234 | one of rate, interval and drop_all is needed | fault $kind add $needs
234 | one of rate, interval and drop_all is needed | fault $kind add --random $needs
234 | one of rate, interval and drop_all is needed | fault $kind add --rate 2 --drop_all $needs
234 | rate: 0 is not in 1..4294967295 | fault $kind add --rate 0 $needs
255 | cannot parse rate value | fault $kind add --rate often $needs
234 | option '--rate' requires an argument | fault $kind add $needs --rate
234 | interval: seconds are expected | fault $kind add --interval 1e3 $needs
234 | source: cannot parse NID 'nonsense' | fault $kind add --rate 1 --source nonsense $needs
234 | dest: cannot parse NID 'nonsense' | fault $kind add --rate 1 --dest nonsense $needs
234 | local_nid: cannot parse NID 'nonsense' | fault $kind add --rate 1 --local_nid nonsense $needs
234 | portal: a number is expected, 0 to 63 | fault $kind add --rate 1 --portal 4,64 $needs
234 | portal: ACKs and REPLYs have none | fault $kind add --rate 1 --portal 4 --message ACK,REPLY $needs
234 | message: unknown: 'HELLO' | fault $kind add --rate 1 --message put,HELLO $needs
234 | all: not for add | fault $kind add --rate 1 --all $needs
234 | either source and dest, or all, is needed | fault $kind del
234 | either source and dest, or all, is needed | fault $kind del --all --dest 127.0.0.1@tcp
234 | rate: not for del | fault $kind del --source 10.0.0.5@tcp --dest 127.0.0.1@tcp --rate 1000
254 | there is no such rule | fault $kind del --source 10.0.0.5@tcp --dest 10.0.0.6@tcp
234 | drop_all: not for show | fault $kind show --drop_all
234 | source: not for list | fault $kind list --source 10.0.0.5@tcp
234 | portal: not for reset | fault $kind reset --portal 4
234 | unexpected argument: now | fault $kind reset now
END
done >>"$dir/wrong" <<'END'
drop|
delay|--latency 1
duplicate|
corrupt|
error|--health_error random
--rule_type drop|
END
cat >>"$dir/wrong" <<'END'
234 | drop: latency is not for such rules | fault --rule_type drop add --rate 1 --latency 1
234 | corrupt: health_error is not for such rules | fault --rule_type corrupt add --rate 1 --health_error random
234 | health_error: unknown: 'bad_mood' | fault drop add --rate 1 --health_error bad_mood
234 | delay: latency is needed | fault delay add --rate 1
234 | latency: seconds are expected | fault delay add --rate 1 --latency 0
234 | error: health_error is needed | fault error add --rate 1
234 | health_error: unknown: 'bad_mood' | fault error add --rate 1 --health_error random,bad_mood
END

configured "$dir/before"
while IFS= read -r line; do
	arguments=${line#*' | '}
	pattern=${arguments% ' | '*}
	eval "words=(${arguments##*' | '})"
	ctl "${line%% *}" "${words[@]}"
	silent out
	refused "${pattern% | *}"
done <"$dir/wrong"
ctl 234 path show --nid 10.0.0.5@tcp --source 127.0.0.9@tcp
refused 'no path to 10.0.0.5@tcp: no such local NI'

# ---- wrong files: exit status, what the error says, the mode, the text ----

while IFS='|' read -r status pattern mode text; do
	run "$status" "$lnetctl" import $mode <<<"$text"
	ran="import $mode <<<'$text'"
	silent out
	refused "$pattern"
done <<'END'
234|line 1, column 1: not a mapping||nonsense
234|line 1, column 11: unknown key 'nonsense'|--add|nonsense: []
254|line 1, net 2: cannot parse net 'tpc'|--add|net: [{net type: tcp2, local NI(s): [{interfaces: {0: 127.0.0.4}}]}, {net type: tpc, local NI(s): []}]
156|line 1, net 1: .*tcp2\(none0\): no such interface|--add|net: [{net type: tcp2, local NI(s): [{interfaces: {0: 127.0.0.4}}, {interfaces: {0: none0}}]}]
234|line 1, net 1: credits: -7 is not in -1|--add|net: [{net type: tcp2, local NI(s): [{interfaces: {0: 127.0.0.4}, tunables: {credits: -7}}]}]
234|line 1, net 1: unknown tunable 'toss': 'tos' may be meant|--add|net: [{net type: tcp2, local NI(s): [{interfaces: {0: 127.0.0.4}, lnd tunables: {toss: 1}}]}]
234|line 1, net 1: tcp bonding: 2 is not in 0..1|--add|net: [{net type: tcp2, local NI(s): [{interfaces: {0: 127.0.0.4}, tcp bonding: 2}]}]
234|line 1, net 1: local NI\(s\) is missing|--add|net: [{net type: tcp2}]
234|line 1, peer 1: primary nid is missing|--add|peer: [{peer ni: [{nid: 10.0.0.9@tcp}]}]
234|line 1, peer 1: nid is missing|--add|peer: [{primary nid: 10.0.0.9@tcp, peer ni: [{state: NA}]}]
234|line 1, peer 1: Multi-Rail: true or false is expected|--add|peer: [{primary nid: 10.0.0.9@tcp, Multi-Rail: maybe}]
239|line 1, peer 2: cannot add NID 10.0.1.5@tcp1 to peer 10.0.0.7@tcp: another|--add|peer: [{primary nid: 10.0.0.9@tcp}, {primary nid: 10.0.0.7@tcp, peer ni: [{nid: 10.0.1.5@tcp1}]}]
234|line 1, .*retry_count: -1 is not in|--add|global: {transaction_timeout: 77, retry_count: -1}
234|line 1, .*transaction_timeout has to be more than|--add|global: {transaction_timeout: 77, retry_count: 77}
234|line 1, .*unknown setting 'retry_cuont': 'retry_count' may be meant|--add|global: {transaction_timeout: 77, retry_cuont: 1}
234|line 1, .*drop_asym_route: 2 is not in 0..1|--add|global: {drop_asym_route: 2}
234|line 1, fault 1: one of rate, interval and drop_all is needed|--add|fault: [{rule_type: drop}]
234|line 1, fault 2: error: health_error is needed|--add|fault: [{rule_type: drop, rate: 1}, {rule_type: error, rate: 1}]
234|line 1, net 1: .*no tcp7|--del|net: [{net type: tcp7}]
234|line 1, net 2: .*no tcp7|--del|net: [{net type: tcp}, {net type: tcp7}]
254|line 1, peer 2: cannot del peer 10.0.0.77@tcp: no such peer|--del|peer: [{primary nid: 10.0.0.5@tcp}, {primary nid: 10.0.0.77@tcp}]
254|line 1, peer 1: cannot del NID 10.0.9.9@tcp from peer|--del|peer: [{primary nid: 10.0.0.5@tcp, peer ni: [{nid: 10.0.1.5@tcp1}, {nid: 10.0.9.9@tcp}]}]
254|line 1, fault 1: cannot del fault rule: there is no such rule|--del|fault: [{rule_type: drop, source: 10.0.0.5@tcp, dest: 10.0.0.6@tcp, rate: 1}]
254|line 1, net 1: cannot parse net 'tpc'|--show|net: [{net type: tpc}]
254|line 1, peer 1: cannot get peer information of 10.0.0.99@tcp: no such peer|--show|peer: [{primary nid: 10.0.0.99@tcp}]
234|failed to ping nonsense: that is no NID|--exec|ping: [{nid: nonsense}]
234|failed to discover 127.0.0.1@tcp: that is a NID of this node|--exec|discover: [{primary nid: 127.0.0.1@tcp}]
234|line 1, route 1: net is missing|--add|route: [{gateway: 127.0.0.9@tcp}]
234|line 1, route 2: gateway is missing|--add|route: [{net: tcp8, gateway: 127.0.0.9@tcp}, {net: tcp9}]
234|line 1, route 1: unknown key 'hops'|--add|route: [{net: tcp9, gateway: 127.0.0.9@tcp, hops: 2}]
239|line 1, route 2: cannot add route to tcp9 by 127.0.0.9@tcp: Route already exists|--add|route: [{net: tcp9, gateway: 127.0.0.9@tcp}, {net: tcp9, gateway: 127.0.0.9@tcp}]
143|line 1, route 2: cannot add route .* No interface configured|--add|route: [{net: tcp9, gateway: 127.0.0.9@tcp}, {net: tcp9, gateway: 127.0.0.9@tcp7}]
254|line 1, route 1: cannot delete route .* there is no such route|--del|route: [{net: tcp9, gateway: 127.0.0.9@tcp}]
234|line 1, .*enable: true or false is expected|--add|routing: [{enable: perhaps}]
234|line 1, .*large: -3 is not in|--add|buffers: {tiny: 1, large: -3}
234|line 1, udsp 1: unknown key 'scr': 'src' may be meant|--add|udsp: [{scr: tcp}]
234|line 1, udsp 2: cannot add udsp: src: |--add|udsp: [{src: tcp}, {src: nonsense}]
254|line 1, udsp 1: cannot del udsp: No such file|--del|udsp: [{src: tcp}]
234|line 1, tls 1: name is missing|--add|tls: [{nids: "*@tcp"}]
234|line 1, tls 1: nids is missing|--add|tls: [{name: a}]
234|line 1, tls 2: unknown key 'nid'|--add|tls: [{name: a, nids: "*@tcp"}, {name: b, nid: "*@tcp"}]
234|line 1, tls 2: cannot set tls rule 'b': nids: |--add|tls: [{name: a, nids: "*@tcp"}, {name: b, nids: [1@tcp, nonsense]}]
234|line 1, .*nids: a list is expected|--add|tls: [{name: a, nids: {x: y}}]
254|line 1, tls 1: cannot del tls rule 'a': there is no rule|--del|tls: [{name: a}, {name: b}]
234|line 1, ip2nets 1: ip-range is missing|--add|ip2nets: [{net-spec: tcp}]
234|line 1, ip2nets 1: net-spec is missing|--add|ip2nets: [{ip-range: {0: 127.0.0.1}}]
234|line 1, ip2nets 1: unknown key 'iprange': 'ip-range' may be meant|--add|ip2nets: [{net-spec: tcp2, iprange: {0: 127.0.0.1}}]
234|line 1, ip2nets 2: 'tcp3 127.0.0.\[9-1\]': at character|--add|ip2nets: [{net-spec: tcp2, ip-range: {0: 127.0.0.1}}, {net-spec: tcp3, ip-range: ['127.0.0.[9-1]']}]
254|no rule matches an address of this host|--add|ip2nets: [{net-spec: tcp2, ip-range: {0: 127.9.9.9}}]
END

# ---- right: the arguments ----

cat >"$dir/right" <<'END'
net add --net tcp2 --if 127.0.0.4 --peer-timeout 100 --peer-credits 9 --peer-buffer-credits 10 --credits 300 --cpt '[0]' --conns-per-peer 2 --tos 8 --tls off --skip-mr-route-setup
net add --nid 127.0.0.6@tcp3
net show --net tcp2 --verbose 5
net set --nid 127.0.0.4@tcp2 --health 1000
net set --all --health 1000
net set --net tcp2 --health 1000
net del --nid 127.0.0.6@tcp3
net del --net tcp2 --if 127.0.0.4
peer add --prim_nid 10.0.0.6@tcp --nid 10.0.1.6@tcp1 --nid 10.0.2.6@tcp,10.0.3.6@tcp --non_mr --lock_prim
peer show --nid 10.0.1.6@tcp1 --verbose 5
peer list
peer set --nid 10.0.1.6@tcp1 --health 900
peer set --all --health 1000
path show --nid 10.0.0.6@tcp --source 127.0.0.1@tcp
debug peer --nid 10.0.1.6@tcp1
debug objects
debug recovery --local
debug recovery --peer
peer del --prim_nid 10.0.0.6@tcp --nid 10.0.1.6@tcp1 --force --lock_prim
peer add --prim_nid 10.0.0.6@tcp --ip2nets '10.0.[4-5].[6,7]@tcp'
peer del --prim_nid 10.0.0.6@tcp --ip2nets 10.0.5.[6-7]@tcp,10.0.4.7@tcp --nid 10.0.4.6@tcp
peer del --prim_nid 10.0.0.6@tcp
set retry_count 2
global show
stats show
stats reset
ping --timeout 60 --source 0@lo 0@lo
fault delay add --rate 1 --latency 0.5
fault delay list
fault delay del --source '*' --dest '*'
fault duplicate add --interval 0.5 --random
fault duplicate del --all
fault corrupt add --drop_all --portal 4 --message PUT --local_nid 127.0.0.1@tcp
fault corrupt reset
fault corrupt del --all
fault drop add --rate 9 --source 10.0.0.6@tcp --dest 127.0.0.1@tcp
fault drop del --source 10.0.0.6@tcp --dest 127.0.0.1@tcp
fault error show
fault add --rule_type delay --rate 9 --latency 0.5
fault show --rule_type delay
fault reset --rule_type delay
fault del --rule_type delay --source '*' --dest '*'
fault del --rule_type delay --all
cpt-of-nid --nid 10.0.0.6@tcp,127.0.0.1@tcp --nid 0@lo
fault --rule_type error add --rate 9 --health_error local_error
fault --rule_type error show
fault --rule_type error del --all
import --add /dev/null
import --ignore_errors /dev/null
import --del /dev/null
import --show /dev/null
import --exec /dev/null
export --backup /dev/null
export --dot /dev/null
export --kernel /dev/null
version
top --interval 0.1 --count 1 --rows 2
metrics
metrics --peers 3
net add --ip2net 'tcp9(127.0.0.1) 127.0.0.1; tcp8 127.9.9.9' --credits 100
net del --net tcp9
udsp add --src tcp --priority 3 --idx 0
udsp add --dst tcp5 --rte 127.0.0.9@tcp
udsp add --src 127.0.0.1@tcp --dst 127.0.0.9@tcp
udsp show --idx 0
udsp del --idx 0
udsp del --all
tls set --name 'n*.site' --nids '127.0.0.[1-9]@tcp *@tcp5'
tls set --name a --nids 127.0.0.9@tcp
tls show --name a
tls del --name a
tls show
tls del --all
route add --net tcp5 --gateway 127.0.0.9@tcp --hop 2 --priority 3 --health_sensitivity 1
route add --net tcp5 --gateway 127.0.0.8@tcp --hop-count 1
route show --net tcp5 --gateway 127.0.0.9@tcp --hop 2 --priority 3 --verbose
route del --net tcp5 --gateway 127.0.0.9@tcp
route del --net tcp5 --gateway 127.0.0.8@tcp
routing show
END
while IFS= read -r line; do
	eval "words=($line)"
	ctl 0 "${words[@]}"
	silent err
done <"$dir/right"
configured "$dir/after"
run 0 diff "$dir/before" "$dir/after"

# ---- is there a command, or an option, that is not above? ----

# Tried in other files: they take a node down, need another one, or RPC.
elsewhere='lnet configure|lnet unconfigure|discover|rpc show|rpc slow|rpc set|rpc reset|reload|rpc rules'
# What is always refused has no right use.
never='auth-key|traffic-class|state|lnd-timeout'

among() { # FILE COMMAND OPTION
	grep -E "(^|\| )$2( |\$)" "$dir/$1" | grep -qE -- "$3( |\$)"
}

commands() {
	local command sub

	for command in $("$lnetctl" --list-commands); do
		[ "$command" = set ] && echo set && continue
		for sub in $("$lnetctl" "$command" --list-commands); do
			echo "$command $sub"
		done | grep . || echo "$command"
	done
}

while read -r command; do
	read -r -a words <<<"$command"
	ctl 0 "${words[@]}" --help
	expect "$command: wrong arguments" among wrong "$command" ''
	[[ $command =~ ^($elsewhere)$ ]] ||
		expect "$command: right" among right "$command" ''
	for option in $(grep -oE -- '^ +(-.,)? +--[a-z0-9_-]+' "$dir/out" |
			grep -oE -- '--.*'); do
		expect "$command: $option, wrong" \
			among wrong "$command" "$option"
		[[ $command =~ ^($elsewhere)$ || ${option#--} =~ ^($never)$ ||
			"$command $option" =~ ^(net\ set\ --conns-per-peer|metrics\ --listen)$ ||
			$command =~ ^fault ]] ||
			expect "$command: $option, right" \
				among right "$command" "$option"
	done
done < <(commands)
finish
