# NIDs: values, texts, lists of them.
libulnetcore_la_SOURCES += %D%/nid.c %D%/nid.h %D%/nid_priv.h
libulnetcore_la_SOURCES += %D%/nidlist.c
libulnetcore_la_SOURCES += %D%/range.c %D%/range.h
