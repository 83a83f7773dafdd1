# SPDX-License-Identifier: BSD-3-Clause
# A store for durable services: keys, values and records of calls, in files.
libulrpccore_a_SOURCES += %D%/compact.c
libulrpccore_a_SOURCES += %D%/journal.c %D%/journal.h
libulrpccore_a_SOURCES += %D%/open.c
libulrpccore_a_SOURCES += %D%/store.c %D%/store.h
libulrpccore_a_SOURCES += %D%/table.c %D%/table.h
libulrpccore_a_SOURCES += %D%/txn.c
