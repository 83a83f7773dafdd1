libservices_la_SOURCES += %D%/message.c %D%/message.h
libservices_la_SOURCES += %D%/list.c %D%/list.h
