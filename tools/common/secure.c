/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int secure_stdio(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}
