# SPDX-License-Identifier: BSD-3-Clause
# Tests that need a kernel with netem, or with Soft-RoCE, run in a virtual machine,
# which sees the files of the build. Without --long only a slice of them, and only where
# there is an emulator already. For sourcing by ./check.
stage vm touched '^. (lnd/o2iblnd/|tests/vm/)'

# run_in_vm TEST [OPTION...]: runs TEST, which may have arguments. Returns 125 if there
# is no such machine.
run_in_vm() {
	local words

	read -ra words <<<"$1"
	cd "$BUILD/release" && VM_RUN_CACHE=$BUILD/vm timeout -k 10 1800 \
		"$SRC/tests/vm/vm-run" --timeout 1500 --cpus 2 --mem 2048 \
		"${@:2}" --env srcdir="$SRC" -- \
		bash "$SRC/${words[0]}" "${words[@]:1}"
}

# vm_test TEST [OPTION...]: runs TEST, which is one result.
vm_test() {
	local test=$1 name=${1##*/} status=0
	local log=$logs/vm-${name// /}.log

	run_in_vm "$@" >"$log" 2>&1 </dev/null || status=$?
	case $status in
	0) pass "$test" ;;
	77 | 125) skip "$test" "$(tail -n 1 "$log")" ;;
	*) fail "$test" 1 "$log" ;;
	esac
}

stage_vm() {
	local short="tests/vm/o2ib_rpc.sh --short"

	if [ $long = yes ]; then
		"$SRC/scripts/install_deps" vm || {
			skip "virtual machines" "no emulator"
			return 0
		}
		release_build vm-programs || return 0
		vm_test tests/net/netem.sh
		vm_test tests/vm/o2ib_verbs.sh --rdma rxe
		vm_test tests/vm/o2ib_rpc.sh --rdma rxe
	elif command -v qemu-system-x86_64 >/dev/null; then
		release_build vm-programs || return 0
		vm_test "$short" --rdma rxe
	else
		skip "$short" "no emulator: installed with --long"
	fi
}
