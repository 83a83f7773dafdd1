#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nodes on TCP, each with a loopback address of its own: requirements E3, E4.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"

said_port="port $port (kernel nodes use 988)"

need_lnetd a --net 'tcp(127.0.0.1)' --port "$port"
ran="ready line"
echo "$ready" >"$dir/out"
same out <<END
lnetd: ready: 127.0.0.1@tcp, $said_port, socket $ULNET_SOCKET
END
need_lnetd b --net 'tcp(127.0.0.2),tcp1(127.0.0.3)' --port "$port" \
	--socket "$dir/b"
ran="ready line"
echo "$ready" >"$dir/out"
same out <<END
lnetd: ready: 127.0.0.2@tcp, 127.0.0.3@tcp1, $said_port, socket $dir/b
END

# ---- peers ----

ctl 0 peer list
silent out
ctl 0 ping 127.0.0.2@tcp --timeout 60
silent err
same out <<END
ping:
- primary nid: 127.0.0.2@tcp
  Multi-Rail: false
  peer_ni:
  - nid: 127.0.0.2@tcp
  - nid: 127.0.0.3@tcp1
END
ctl 0 --socket "$dir/b" ping 127.0.0.1@tcp --timeout 60
same out <<END
ping:
- primary nid: 127.0.0.1@tcp
  Multi-Rail: false
  peer_ni:
  - nid: 127.0.0.1@tcp
END
# Good ones first, then what is wrong with the others.
ctl 255 ping 127.0.0.2@tcp 127.0.0.9@tcp 127.0.0.1@tcp --timeout 10
has out "^- primary nid: 127.0.0.1@tcp\$"
has out "^- primary nid: 127.0.0.2@tcp\$"
has err "^manage:\$"
has err "^- ping:\$"
has err "^  descr: ! 'failed to ping 127.0.0.9@tcp: .*'\$"
ctl 255 ping 127.0.0.3@tcp9
ctl 0 peer show --nid 127.0.0.2@tcp
same out <<END
peer:
-     primary nid: 127.0.0.2@tcp
      Multi-Rail: false
      peer ni:
      -     nid: 127.0.0.2@tcp
            state: NA
END
ctl 0 peer show --nid 127.0.0.2@tcp -v
has out "^            max_ni_tx_credits: 8\$"
has out "^                  send_count: [1-9]"
ctl 0 peer list
has out "127.0.0.2@tcp"

# ---- networks ----

ctl 0 net show --net tcp
same out <<END
net:
-     net type: tcp
      local NI(s):
      -     nid: 127.0.0.1@tcp
            status: up
            interfaces:
                  0: 127.0.0.1
END
ctl 0 net add --net tcp1 --if 127.0.0.1 --peer-credits 4 --credits 64 \
	--peer-timeout 100 --conns-per-peer 2
silent out
silent err
ctl 0 net show --net tcp1 -v
same out <<END
net:
-     net type: tcp1
      local NI(s):
      -     nid: 127.0.0.1@tcp1
            status: up
            interfaces:
                  0: 127.0.0.1
            statistics:
                  send_count: 0
                  recv_count: 0
                  drop_count: 0
            tunables:
                  peer_timeout: 100
                  peer_credits: 4
                  peer_buffer_credits: 0
                  credits: 64
            lnd tunables:
                  conns_per_peer: 2
                  timeout: 16
                  tos: -1
            dev cpt: -1
            CPT: "[0]"
END
ctl 0 ping 127.0.0.3@tcp1 --timeout 60
ctl 239 net add --net tcp1 --if 127.0.0.1
has err "^      errno: -17\$"
ctl 156 net add --net tcp2 --if no-such-if
has err "^      errno: -100\$"
has err "no-such-if"
ctl 0 net add --net tcp2 --if 127.0.0.4,127.0.0.5
ctl 0 net show --net tcp2
has out "nid: 127.0.0.4@tcp2"
has out "nid: 127.0.0.5@tcp2"
ctl 0 net del --net tcp2 --if 127.0.0.4
ctl 0 net show --net tcp2
same out <<END
net:
-     net type: tcp2
      local NI(s):
      -     nid: 127.0.0.5@tcp2
            status: up
            interfaces:
                  0: 127.0.0.5
END
ctl 0 net del --net tcp2
ctl 0 net show --net tcp2
silent out
ctl 234 net del --net tcp2
ctl 0 net add --nid 127.0.0.6@tcp2
ctl 0 net show --net tcp2
has out "nid: 127.0.0.6@tcp2"
ctl 0 net del --nid 127.0.0.6@tcp2
ctl 234 net add --nid 127.0.0.6@tcp2 --net tcp1
ctl 0 net add --net tcp3 --if lo
ctl 0 net show --net tcp3
has out "0: lo\$"
ctl 0 net del --nid 127.0.0.1@tcp3
ctl 0 net show --net tcp3
silent out

# ---- what is exported is what was there ----

ctl 0 export --backup "$dir/conf"
ctl 0 lnet unconfigure
ctl 156 net show
ctl 0 lnet configure --all
ctl 0 net show --net tcp
has out "127.0.0.1@tcp"
ctl 0 net show --net tcp1
silent out
stop_lnetd a
need_lnetd a --config "$dir/conf" --port "$port"
expect "ready line: $ready" test "$ready" = \
	"lnetd: ready: 127.0.0.1@tcp, 127.0.0.1@tcp1, $said_port, socket $ULNET_SOCKET"
ctl 0 export --backup
same out <"$dir/conf"
ctl 0 ping 127.0.0.2@tcp --timeout 60
ctl 0 import --del "$dir/conf"
ctl 0 net show --net tcp
silent out
ctl 0 import --add "$dir/conf"
ctl 0 ping 127.0.0.2@tcp --timeout 60
ctl 0 export --backup
same out <"$dir/conf"

# ---- the same address twice, no address, no right to the port ----

run 1 "$lnetd" --foreground --socket "$dir/c" --port "$port" \
	--net 'tcp(127.0.0.1)'
has err "^lnetd: --net tcp\(127.0.0.1\): tcp\(127.0.0.1\): Address already in"
expect "no socket" test ! -e "$dir/c"
run 1 "$lnetd" --foreground --socket "$dir/c" --port "$port" \
	--net 'tcp(192.0.2.1)'
has err "^lnetd: --net tcp\(192.0.2.1\): "
need_lnetd c --accept none --socket "$dir/c" --port "$port" \
	--net 'tcp(127.0.0.4)'
ctl 255 ping 127.0.0.4@tcp --timeout 10
ctl 0 --socket "$dir/c" ping 127.0.0.2@tcp --timeout 60
stop_lnetd c
need_lnetd c --accept all --socket "$dir/c" --port "$port" \
	--net 'tcp(127.0.0.7)'
ctl 0 ping 127.0.0.7@tcp --timeout 60
stop_lnetd c

# What was bonding once: an interface has an NI of its own, and that is said.
need_lnetd c --log info --socket "$dir/c" --port "$port" \
	--net 'tcp(127.0.0.4,127.0.0.5),tcp1(127.0.0.4),tcp2(127.0.0.4)'
grep -n "are one NI each" "$dir/c.err" >"$dir/err"
has err '^[0-9]+:lnetd: --net tcp\(.*: tcp: 2 interfaces, which are one NI each'
expect "one note" test "$(wc -l <"$dir/err")" = 1
ctl 0 --socket "$dir/c" net show --net tcp
has out 'nid: 127.0.0.4@tcp$'
has out 'nid: 127.0.0.5@tcp$'
stop_lnetd c

# Without the capability. Root gives up no more than that: another user may not be
# allowed to read the tree.
bare=()
[ "$(id -u)" != 0 ] || bare=(setpriv --bounding-set -net_bind_service
	--inh-caps -net_bind_service)
if [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -gt 988 ]; then
	run 1 "${bare[@]}" "$lnetd" --foreground --socket "$dir/s" \
		--net 'tcp(127.0.0.1)'
	has err "port 988 is below 1024.*CAP_NET_BIND_SERVICE.*--port 1024"
	expect "no socket" test ! -e "$dir/s"
fi
finish
