internal import CALSA
internal import Glibc
internal import Platform

/// The sound cards of this machine, as the kernel lists them now.
enum SoundCards {
    struct Entry {
        /// "Loopback": what the configuration names.
        var card: String
        var device: Int
        /// "Loopback 1, Loopback PCM".
        var label: String
        /// Where the card is plugged in, such as "1-3:1.0"; nil when it is nowhere.
        var port: String?
    }

    /// All devices that capture, or that play.
    static func all(_ direction: PCM.Direction) -> [Entry] {
        calsa_quiet()
        var entries: [Entry] = []
        var number: Int32 = -1
        while snd_card_next(&number) == 0, number >= 0 {
            var control: OpaquePointer?
            guard snd_ctl_open(&control, "hw:\(number)", Int32(SND_CTL_NONBLOCK)) == 0, let control else { continue }
            entries += devices(of: control, number, direction)
            snd_ctl_close(control)
        }
        return entries
    }

    /// The names that a configuration may use.
    static func names(_ direction: PCM.Direction) -> [String] {
        all(direction).map { "'\($0.card)' (device \($0.device))" }
    }

    /// The kernel's node of a PCM, for asking who holds it.
    static func node(of name: PCMName, _ direction: PCM.Direction) -> String? {
        guard let card = name.card else { return nil }
        let number = snd_card_get_index(card)
        return number < 0 ? nil : "/dev/snd/pcmC\(number)D\(name.device)\(direction == .capture ? "c" : "p")"
    }

    private static func devices(
        of control: OpaquePointer, _ number: Int32, _ direction: PCM.Direction
    ) -> [Entry] {
        var card: OpaquePointer?
        var pcm: OpaquePointer?
        guard snd_ctl_card_info_malloc(&card) == 0, let card else { return [] }
        defer { snd_ctl_card_info_free(card) }
        guard snd_pcm_info_malloc(&pcm) == 0, let pcm else { return [] }
        defer { snd_pcm_info_free(pcm) }
        guard snd_ctl_card_info(control, card) == 0, let id = snd_ctl_card_info_get_id(card) else { return [] }
        let name = snd_ctl_card_info_get_name(card).map { String(cString: $0) } ?? ""
        var entries: [Entry] = []
        var device: Int32 = -1
        while snd_ctl_pcm_next_device(control, &device) == 0, device >= 0 {
            snd_pcm_info_set_device(pcm, UInt32(bitPattern: device))
            snd_pcm_info_set_subdevice(pcm, 0)
            snd_pcm_info_set_stream(pcm, direction == .capture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK)
            guard snd_ctl_pcm_info(control, pcm) == 0 else { continue }
            let what = snd_pcm_info_get_name(pcm).map { String(cString: $0) } ?? ""
            entries.append(
                Entry(
                    card: String(cString: id), device: Int(device),
                    label: [name, what].filter { !$0.isEmpty }.joined(separator: ", "), port: port(of: number)))
        }
        return entries
    }

    private static func port(of number: Int32) -> String? {
        guard let real = realpath("/sys/class/sound/card\(number)/device", nil) else { return nil }
        defer { free(real) }
        return FilePath.name(of: String(cString: real))
    }
}
