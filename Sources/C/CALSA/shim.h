#pragma once
#include <alsa/asoundlib.h>

// alsa-lib writes its errors to standard error; ours name the same fault with its cure. The handler is variadic, which
// Swift can't write.
__attribute__((unused)) static void calsa_ignore(const char *file, int line, const char *function, int error,
                                                 const char *format, ...) {
    (void)file, (void)line, (void)function, (void)error, (void)format;
}
static inline void calsa_quiet(void) { snd_lib_error_set_handler(calsa_ignore); }

// audio_tstamp: its structs are bit-fields and its kinds an enum of plain numbers.

// The best kind that a card has of those that count the link's own clock since the start; 0 for none.
static inline int calsa_link_kind(snd_pcm_hw_params_t *parameters) {
    if (snd_pcm_hw_params_supports_audio_ts_type(parameters, SND_PCM_AUDIO_TSTAMP_TYPE_LINK_SYNCHRONIZED) == 1)
        return SND_PCM_AUDIO_TSTAMP_TYPE_LINK_SYNCHRONIZED;
    if (snd_pcm_hw_params_supports_audio_ts_type(parameters, SND_PCM_AUDIO_TSTAMP_TYPE_LINK) == 1)
        return SND_PCM_AUDIO_TSTAMP_TYPE_LINK;
    return 0;
}

static inline void calsa_ask_link(snd_pcm_status_t *status, unsigned int kind) {
    snd_pcm_audio_tstamp_config_t config = {0};
    config.type_requested = kind;
    snd_pcm_status_set_audio_htstamp_config(status, &config);
}

// Nanoseconds since the start by the link's clock; 0 when the answer is of another kind.
static inline long long calsa_link_ns(snd_pcm_status_t *status) {
    snd_pcm_audio_tstamp_report_t report = {0};
    snd_htimestamp_t stamp = {0};
    snd_pcm_status_get_audio_htstamp_report(status, &report);
    if (!report.valid || report.actual_type < SND_PCM_AUDIO_TSTAMP_TYPE_LINK) return 0;
    snd_pcm_status_get_audio_htstamp(status, &stamp);
    return stamp.tv_sec * 1000000000LL + stamp.tv_nsec;
}
