# NIDs, and the one parser of ranges.
libulnetcore_la_SOURCES += %D%/nid.c %D%/nid_priv.h
libulnetcore_la_SOURCES += %D%/nidlist.c
libulnetcore_la_SOURCES += %D%/range.c %D%/range.h
