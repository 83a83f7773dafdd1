# Measurements; not part of make check. bench/run builds and calls them.
if !WITH_FUZZERS
EXTRA_PROGRAMS += %D%/core
endif
EXTRA_DIST += %D%/run
