# SPDX-License-Identifier: BSD-3-Clause
# Tests that use real time, while threads are delayed against each other: for a few
# hundred microseconds often, for a second or two now and then (tests/noise/noise.c).
# Whoever looks before another thread has come fails here. $NOISE_SEEDS are other seeds.
# For sourcing by ./check.
stage noise long

# noise_of SEED: settings for noise.c. Any thread is late in one third of the seeds, for
# longer; only the threads that the library makes in another; only the main one in the
# last.
noise_of() {
	printf '%s ' "NOISE_SEED=$1" "NOISE_ONLY=$BUILD/release/" \
		"LD_PRELOAD=$BUILD/release/tests/noise/noise.so"
	case $(($1 % 3)) in
	0) echo "NOISE_LONG=100" ;;
	1) echo "NOISE_WHO=others NOISE_LATE=200" ;;
	2) echo "NOISE_WHO=main NOISE_LATE=200" ;;
	esac
}

stage_noise() {
	local seed

	release_build program-tests || return 0
	# They sleep most of their time.
	export UNIT_JOBS=$((4 * JOBS))
	for seed in ${NOISE_SEEDS:-1 2 3}; do
		export RUN_UNDER="env $(noise_of "$seed")"
		JOBS=$((3 * JOBS)) suite release check-noise
	done
	unset UNIT_JOBS RUN_UNDER
}
