#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Discovery by lnetctl, between nodes of two NIDs that talk over TCP.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
b=$dir/b.sock

need_lnetd a --net 'tcp(127.0.0.1),tcp1(127.0.0.3)' --port "$port"
need_lnetd b --net 'tcp(127.0.0.2),tcp1(127.0.0.4)' --port "$port" --socket "$b"
ctl 0 set discovery 1
ctl 0 --socket "$b" set discovery 1

found() { # NID OTHER-NID
	cat <<END
discover:
- primary nid: $1
  Multi-Rail: true
  peer_ni:
  - nid: $1
  - nid: $2
END
}

known() { # NID OTHER-NID
	cat <<END
peer:
-     primary nid: $1
      Multi-Rail: true
      peer ni:
      -     nid: $1
            state: NA
      -     nid: $2
            state: NA
END
}

ctl_at_last discover 127.0.0.4@tcp1 --timeout 60
silent err
found 127.0.0.2@tcp 127.0.0.4@tcp1 >"$dir/found"
same out <"$dir/found"
# By any of its NIDs; whoever is up to date is not asked again, unless by force.
ctl 0 discover 127.0.0.2@tcp
same out <"$dir/found"
ctl_at_last discover --force --timeout 60 127.0.0.2@tcp
same out <"$dir/found"
known 127.0.0.2@tcp 127.0.0.4@tcp1 >"$dir/known"
ctl 0 peer show
same out <"$dir/known"
ctl 0 peer show --nid 127.0.0.4@tcp1
same out <"$dir/known"
ctl 0 debug peer --nid 127.0.0.4@tcp1
has out "^-     primary nid: 127.0.0.2@tcp\$"
has out "^      state: discovered\$"
has out "^      peer state: 273\$"
has out "^      - NIDS_UPTODATE\$"
ctl 0 peer show -v 5 --nid 127.0.0.4@tcp1
has out "^      state name: discovered\$"
has out "^            state name: active\$"
ctl_until '^      health value: 1000$' net show -v 5 --net tcp
has out "^      state name: active\$"
has out "^            resend_count: [0-9]+\$"
# The answer came in on one of its interfaces.
ctl 0 net show -v 5
has out "^                  avg_nsec: [1-9]"
has out "^            state name: active\$"
# The other one was told.
ctl_at_last --socket "$b" discover --timeout 60 127.0.0.3@tcp1
found 127.0.0.1@tcp 127.0.0.3@tcp1 >"$dir/found"
same out <"$dir/found"
known 127.0.0.1@tcp 127.0.0.3@tcp1 >"$dir/known"
ctl 0 --socket "$b" peer show
same out <"$dir/known"

# ---- pings know it ----

ctl 0 ping --timeout 60 127.0.0.2@tcp
same out <<END
ping:
- primary nid: 127.0.0.2@tcp
  Multi-Rail: true
  peer_ni:
  - nid: 127.0.0.2@tcp
  - nid: 127.0.0.4@tcp1
END
ctl 0 stats reset
ctl 0 ping --timeout 60 --source 127.0.0.3@tcp1 127.0.0.4@tcp1
ctl 0 net show -v --net tcp1
has out "^                  send_count: 1\$"
# One net is not another.
ctl 255 ping --source 127.0.0.3@tcp1 127.0.0.2@tcp

# ---- several, of which one fails; nobody listens there ----

ctl 255 discover --timeout 2 127.0.0.2@tcp 127.0.0.9@tcp
has out "^- primary nid: 127.0.0.2@tcp\$"
has err "^manage:\$"
has err "^- discover:\$"
has err "^  descr: ! 'failed to discover 127.0.0.9@tcp: .*'\$"

# ---- from a file ----

printf 'discover:\n- primary nid: 127.0.0.2@tcp\n' >"$dir/file"
ctl 0 import --exec "$dir/file"
has out "^  - nid: 127.0.0.4@tcp1\$"

# ---- all that is shown of nets can be deleted and added again ----

ctl 0 net show -v 5
cp "$dir/out" "$dir/file"
ctl 0 import --del "$dir/file"
ctl 0 net show --net tcp
silent out
ctl 0 import "$dir/file"
silent err
ctl 0 ping --timeout 60 --source 127.0.0.1@tcp 127.0.0.2@tcp
finish
