/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include "tools/common/option.h"

#define NO UINT64_MAX /* an error is expected */

struct row {
	const char *text;
	uint64_t value;
};

static const struct row sizes[] = {
	{ "1", 1 },
	{ "0", 0 },
	{ "4k", 4096 },
	{ "4K", 4096 },
	{ "3M", 3u << 20 },
	{ "1G", 1u << 30 },
	{ "64G", UINT64_C(1) << 36 },
	{ "65G", NO },
	{ "68719476737", NO },
	{ "", NO },
	{ "k", NO },
	{ "-1", NO },
	{ "+1", NO },
	{ " 1", NO },
	{ "1 k", NO },
	{ "1kk", NO },
	{ "1.5k", NO },
	{ "0x10", NO },
	{ "18446744073709551616", NO },
	{ "18446744073709551615G", NO },
};

static const struct row times[] = {
	{ "1", 1000000 },
	{ "1s", 1000000 },
	{ "0.5", 500000 },
	{ "1.25ms", 1250 },
	{ "7us", 7 },
	{ "2m", 120000000 },
	{ "1h", UINT64_C(3600000000) },
	{ "8784h", UINT64_C(366) * 86400 * 1000000 },
	{ "8785h", NO },
	{ "0", NO },
	{ "0.0000001", NO },
	{ "", NO },
	{ "s", NO },
	{ ".5", NO },
	{ "-1", NO },
	{ "1.2.3", NO },
	{ "1e3", NO },
	{ "inf", NO },
	{ "1d", NO },
	{ "1S", NO },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(option, size, .init = cr_redirect_stderr)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		uint64_t value = NO;
		int status = option_size("who", "what", sizes[i].text, 0,
					 UINT64_C(1) << 36, &value);

		cr_expect_eq(value, sizes[i].value, "%s", sizes[i].text);
		cr_expect_eq(status, sizes[i].value == NO ? OPTION_USAGE : 0,
			     "%s", sizes[i].text);
	}
}

Test(option, time, .init = cr_redirect_stderr)
{
	for (size_t i = 0; i < COUNT(times); i++) {
		uint64_t value = NO;
		int status =
			option_time("who", "what", times[i].text, 1, &value);

		cr_expect_eq(value, times[i].value, "%s", times[i].text);
		cr_expect_eq(status, times[i].value == NO ? OPTION_USAGE : 0,
			     "%s", times[i].text);
	}
}

Test(option, time_from_0, .init = cr_redirect_stderr)
{
	static const char *const bad[] = {
		"", "-1", "x", "0x", "1e3", "367000h"
	};
	uint64_t value = NO;

	cr_expect_eq(option_time("who", "what", "0", 0, &value), 0);
	cr_expect_eq(value, 0);
	cr_expect_eq(option_time("who", "what", "0ms", 0, &value), 0);
	cr_expect_eq(option_time("who", "what", "1", 0, &value), 0);
	cr_expect_eq(value, 1000000);
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_eq(option_time("who", "what", bad[i], 0, &value),
			     OPTION_USAGE, "%s", bad[i]);
	cr_expect_eq(value, 1000000);
}

Test(option, rate, .init = cr_redirect_stderr)
{
	static const char *const bad[] = { "",	  "0",	"-1", "k",
					   "1e9", "2G", "nan" };
	double value = 0;

	cr_expect_eq(option_rate("who", "what", "2.5k", 1e9, &value), 0);
	cr_expect_float_eq(value, 2500, 1e-9);
	cr_expect_eq(option_rate("who", "what", "1G", 1e9, &value), 0);
	cr_expect_float_eq(value, 1e9, 1e-3);
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_eq(option_rate("who", "what", bad[i], 1e9, &value),
			     OPTION_USAGE, "%s", bad[i]);
	cr_expect_float_eq(value, 1e9, 1e-3);
}

Test(option, says_what, .init = cr_redirect_stderr)
{
	unsigned int number;

	cr_expect_eq(
		option_number("rpcping", "inflight", "12x", 1, 64, &number),
		OPTION_USAGE);
	cr_expect_eq(option_number("rpcserve", "buffers", "1", 2, 64, &number),
		     OPTION_USAGE);
	cr_expect_eq(option_number("rpcserve", "buffers", "2", 2, 64, &number),
		     0);
	cr_expect_eq(number, 2);
	fflush(stderr);
	cr_expect_stderr_eq_str("rpcping: --inflight 12x: a number from 1 to "
				"64 is expected\n"
				"rpcserve: --buffers 1: a number from 2 to "
				"64 is expected\n");
}
