# SPDX-License-Identifier: BSD-3-Clause
# The fuzzers. (What they start from is read in stage asan, by the same code.) For
# sourcing by ./check.
stage fuzz long

# Works on a copy of the corpus; finds are left beside the logs.
run_fuzzer() { # NAME
	local corpus=$BUILD/fuzz/corpus-$1 dict=$SRC/tests/fuzz/$1.dict

	[ -e "$dict" ] || dict=
	rm -rf "$corpus" && mkdir -p "$corpus" &&
		cp "$SRC/tests/fuzz/corpus/$1"/* "$corpus" &&
		"$BUILD/fuzz/tests/fuzz/fuzz_$1" \
			-max_total_time="${FUZZ_SECONDS:-300}" \
			-timeout=30 -rss_limit_mb=2048 \
			${dict:+"-dict=$dict"} \
			-artifact_prefix="$logs/fuzz-$1-" "$corpus"
}

stage_fuzz() {
	local file names=()

	fuzz_build || return 0
	for file in "$SRC"/tests/fuzz/fuzz_*.c; do
		file=${file##*/fuzz_}
		names+=("${file%.c}")
	done
	at_once "fuzzing of" run_fuzzer "${names[@]}"
}
