internal import Glibc
internal import Platform
package import Timing

/// The time of the emulated room: CLOCK_MONOTONIC of the machine's first time namespace.
///
/// Emulated hosts may be processes in time namespaces whose CLOCK_MONOTONIC are hours apart; sound travels on this one.
package enum RoomTime: ClockDomain {}

/// Between this process's host time and the room's time.
package struct RoomClock: Sendable, Hashable {
    /// Host time minus room time.
    package let offset: Interval

    package init(offset: Interval) { self.offset = offset }

    /// From the kernel's own word on this process; zero outside of a time namespace.
    package static let ofThisProcess = RoomClock(offset: kernelOffset())

    package var now: Timestamp<RoomTime> { room(HostClock.now) }

    package func room(_ instant: Timestamp<HostTime>) -> Timestamp<RoomTime> {
        Timestamp(nanoseconds: (instant - offset).nanoseconds)
    }

    package func host(_ instant: Timestamp<RoomTime>) -> Timestamp<HostTime> {
        Timestamp(nanoseconds: instant.nanoseconds) + offset
    }

    /// The identity of this boot of the machine: room time begins anew with it.
    package static let bootID: String = {
        let bytes = try? Files.read("/proc/sys/kernel/random/boot_id", limit: 256)
        return String(decoding: bytes ?? [], as: UTF8.self).filter { $0.isHexDigit }
    }()

    /// Parses /proc/<pid>/timens_offsets: lines of clock, seconds, nanoseconds.
    package static func offset(inTimensOffsets text: String) -> Interval? {
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count == 3, words[0] == "monotonic" else { continue }
            guard let seconds = Int64(words[1]), let nanoseconds = Int64(words[2]) else { return nil }
            return Interval(nanoseconds: 1_000_000_000) * seconds + .nanoseconds(nanoseconds)
        }
        return nil
    }

    private static func kernelOffset() -> Interval {
        let log = Log("air")
        // The file speaks of the namespace that children will be in; after a bare unshare() without fork or exec that is
        // another one than the caller's.
        if link("/proc/self/ns/time") != link("/proc/self/ns/time_for_children") {
            log.warning("this process made a time namespace that it isn't in: the emulated room's time may be off")
        }
        // A kernel without time namespaces has no such file, and then there is no offset.
        guard let bytes = try? Files.read("/proc/self/timens_offsets", limit: 4096) else { return .zero }
        return offset(inTimensOffsets: String(decoding: bytes, as: UTF8.self)) ?? .zero
    }

    private static func link(_ path: String) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        let length = readlink(path, &buffer, buffer.count)
        // "time:[4026531834]"; the other link has another word before the same number.
        return String(decoding: buffer.prefix(max(length, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .filter { $0.isNumber }
    }
}
