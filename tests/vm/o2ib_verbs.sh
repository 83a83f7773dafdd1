#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The backend of o2iblnd on rdma-core, on two Soft-RoCE devices, as vm-run --rdma rxe
# makes them:
#
#	rxea on va, 10.77.9.1 -------- sa, switch, sb -------- rxeb on vb, 10.77.9.2
#
# Few machines that tests run on have such a kernel; ./check --long has a virtual
# machine with one that does.
set -euo pipefail

program=tests/vm/o2ib_verbs
[ -x "$program" ] || {
	echo "no $program: built without RDMA"
	exit 77
}
rdma link show rxea/1 >/dev/null 2>&1 && rdma link show rxeb/1 >/dev/null 2>&1 || {
	echo "no Soft-RoCE devices rxea and rxeb"
	exit 77
}
[ "$(id -u)" = 0 ] || {
	echo "takes root: ports below 1024, links and addresses and devices that go"
	exit 77
}

timeout 300 "$program" 10.77.9.1 10.77.9.2 va rxea || exit 1
