internal import CALSA
internal import Glibc
internal import Platform

/// The sound cards of this machine, as the kernel lists them now.
enum SoundCards {
    /// All devices that capture, or that play.
    static func all(_ direction: PCMDirection) -> [SoundCard] {
        calsa_quiet()
        var cards: [SoundCard] = []
        var number: Int32 = -1
        while snd_card_next(&number) == 0, number >= 0 {
            var control: OpaquePointer?
            guard snd_ctl_open(&control, "hw:\(number)", Int32(SND_CTL_NONBLOCK)) == 0, let control else { continue }
            cards += devices(of: control, number, direction)
            snd_ctl_close(control)
        }
        return cards
    }

    private static func devices(
        of control: OpaquePointer, _ number: Int32, _ direction: PCMDirection
    ) -> [SoundCard] {
        var card: OpaquePointer?
        var pcm: OpaquePointer?
        guard snd_ctl_card_info_malloc(&card) == 0, let card else { return [] }
        defer { snd_ctl_card_info_free(card) }
        guard snd_pcm_info_malloc(&pcm) == 0, let pcm else { return [] }
        defer { snd_pcm_info_free(pcm) }
        guard snd_ctl_card_info(control, card) == 0, let id = snd_ctl_card_info_get_id(card) else { return [] }
        let name = snd_ctl_card_info_get_name(card).map { String(cString: $0) } ?? ""
        var cards: [SoundCard] = []
        var device: Int32 = -1
        while snd_ctl_pcm_next_device(control, &device) == 0, device >= 0 {
            snd_pcm_info_set_device(pcm, UInt32(bitPattern: device))
            snd_pcm_info_set_subdevice(pcm, 0)
            snd_pcm_info_set_stream(pcm, direction == .capture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK)
            guard snd_ctl_pcm_info(control, pcm) == 0 else { continue }
            let what = snd_pcm_info_get_name(pcm).map { String(cString: $0) } ?? ""
            cards.append(
                SoundCard(
                    number: Int(number), id: String(cString: id), device: Int(device),
                    label: [name, what].filter { !$0.isEmpty }.joined(separator: ", "), port: port(of: number),
                    serial: serial(of: number)))
        }
        return cards
    }

    private static func port(of number: Int32) -> String? {
        guard let real = realpath("/sys/class/sound/card\(number)/device", nil) else { return nil }
        defer { free(real) }
        return FilePath.name(of: String(cString: real))
    }

    /// The kernel resolves the link before the dots: the folder of the USB device that the interface belongs to.
    private static func serial(of number: Int32) -> String? {
        let bytes = (try? Files.read("/sys/class/sound/card\(number)/device/../serial", limit: 256)) ?? []
        let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }
}
