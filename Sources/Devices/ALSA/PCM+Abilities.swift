internal import CALSA
internal import Glibc
internal import Protocol

extension PCM {
    /// What a freshly opened card can do, in words: "s16le, s32le; 1 to 2 channels; 8000 to 96000 Hz".
    func abilities() -> [String] {
        var parameters: OpaquePointer?
        guard snd_pcm_hw_params_malloc(&parameters) == 0, let parameters else { return [] }
        defer { snd_pcm_hw_params_free(parameters) }
        guard snd_pcm_hw_params_any(pointer, parameters) >= 0 else { return [] }
        let formats: [(snd_pcm_format_t, AudioFormat.Encoding)] = [
            (SND_PCM_FORMAT_S16_LE, .s16), (SND_PCM_FORMAT_S24_3LE, .s24), (SND_PCM_FORMAT_S24_LE, .s24),
            (SND_PCM_FORMAT_S32_LE, .s32), (SND_PCM_FORMAT_FLOAT_LE, .f32),
        ]
        var names: [String] = []
        for (format, encoding) in formats
        where snd_pcm_hw_params_test_format(pointer, parameters, format) == 0 && !names.contains(encoding.rawValue) {
            names.append(encoding.rawValue)
        }
        var (fewest, most): (UInt32, UInt32) = (0, 0)
        snd_pcm_hw_params_get_channels_min(parameters, &fewest)
        snd_pcm_hw_params_get_channels_max(parameters, &most)
        var (slowest, fastest): (UInt32, UInt32) = (0, 0)
        snd_pcm_hw_params_get_rate_min(parameters, &slowest, nil)
        snd_pcm_hw_params_get_rate_max(parameters, &fastest, nil)
        let channels = fewest == most ? "\(most) channels" : "\(fewest) to \(most) channels"
        let rates = slowest == fastest ? "\(fastest) Hz" : "\(slowest) to \(fastest) Hz"
        return ["\(names.joined(separator: ", ")); \(channels); \(rates)"]
    }
}
