#pragma once
#include <alsa/asoundlib.h>

// alsa-lib writes its errors to standard error; ours name the same fault with its cure. The handler is variadic, which
// Swift can't write.
__attribute__((unused)) static void calsa_ignore(const char *file, int line, const char *function, int error,
                                                 const char *format, ...) {
    (void)file, (void)line, (void)function, (void)error, (void)format;
}
static inline void calsa_quiet(void) { snd_lib_error_set_handler(calsa_ignore); }
