# Texts that configure a node. spec.c is in libulnetctl, too, hidden in both.
libulnetcore_a_SOURCES += %D%/bridge.c %D%/bridge.h
libulnetcore_a_SOURCES += %D%/networks.c %D%/networks.h
libulnetcore_a_SOURCES += %D%/spec.c %D%/spec.h
libulnetctlcore_a_SOURCES += %D%/spec.c %D%/spec.h
