# Programs for users to read. They use what is installed and nothing else:
#
#	noinst_PROGRAMS += %D%/NAME             (not in a build with fuzzers)
#	examples_NAME_LDADD = libulnet.la
