#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The systemd unit is one.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

run 0 grep -qE '^ExecStart=/.*/lnetd --foreground --wait [0-9]+ --config /' \
	tools/lnetd.service
# It goes on trying when what it needs at the start does not come in time.
for line in StartLimitIntervalSec=0 Restart=on-failure RestartSec=5; do
	run 0 grep -qx "$line" tools/lnetd.service
done
run 0 grep -q '^LimitNOFILE=1048576$' tools/lnetd.service
# shmlnd tells hosts apart by a file of /proc/sys.
run 1 grep '^ProcSubset=pid' tools/lnetd.service
command -v systemd-analyze >/dev/null ||
	skip "systemd-analyze is not installed"
# It looks whether the program is there.
sed "s,^ExecStart=[^ ]*,ExecStart=$lnetd," tools/lnetd.service \
	>"$dir/lnetd.service"
run 0 systemd-analyze --man=no verify "$dir/lnetd.service"
expect "nothing to complain" \
	sh -c '! grep "lnetd.service" "$1" | grep -v "is not executable"' - \
	"$dir/err"
run 0 systemd-analyze security --offline=true "$dir/lnetd.service"
has out "Overall exposure level.* [0-2]\.[0-9] OK"
# With what o2iblnd(7) says that RDMA needs.
mkdir "$dir/lnetd.service.d"
sed -n '/^\[Service\]$/,/^\.Ed$/ { /^\./!p }' "${srcdir:-.}/man/man7/o2iblnd.7" \
	>"$dir/lnetd.service.d/rdma.conf"
run 0 grep -q '^DeviceAllow=' "$dir/lnetd.service.d/rdma.conf"
run 0 systemd-analyze --man=no verify "$dir/lnetd.service"
expect "nothing to complain" sh -c '! grep "rdma.conf" "$1"' - "$dir/err"
finish
