internal import Glibc
internal import Platform

/// An IIO device that fills its buffer; ends the filling with its life.
///
/// One owner, one thread.
final class IIOBuffer {
    /// Bytes that one reading takes at most.
    private static let most = 16_384

    let folder: IIOFolder
    let layout: IIOScanLayout
    let isMonotonic: Bool
    /// As the driver answered.
    let rate: Double?
    private let file: FileDescriptor

    /// Sets the device up and begins.
    ///
    /// The node may be open once only, so whoever opened it owns the buffer: EBUSY is another program.
    init(_ folder: IIOFolder, elements: [IIOScanLayout.Element], rate: Double?) throws(IIOFault) {
        self.folder = folder
        do throws(Errno) {
            file = FileDescriptor(
                owning: try throwingErrno { open(folder.node, O_RDONLY | O_NONBLOCK | O_CLOEXEC) })
        } catch { throw IIOFault(error, "opening \(folder.node)") }
        // Left on by a program that was killed.
        try Self.write(folder, "buffer/enable", "0")
        isMonotonic =
            (try? folder.write("current_timestamp_clock", "monotonic")) != nil
            && folder.read("current_timestamp_clock")?.hasPrefix("monotonic") == true
        if let rate { IIORates.set(rate, folder) }
        self.rate = IIORates.read(folder)
        let wanted = Set(elements.map(\.name))
        for entry in folder.list("scan_elements") where entry.hasSuffix("_en") {
            let isWanted = wanted.contains(String(entry.dropLast(3)))
            try Self.write(folder, "scan_elements/\(entry)", isWanted ? "1" : "0")
        }
        layout = IIOScanLayout(elements)
        try IIOTrigger.choose(for: folder)
        // A second of the device's rows: longer than a busy machine lets a program wait.
        let rows = Int(max(64, min(self.rate ?? 100, 8192)))
        _ = try? folder.write("buffer/length", "\(rows)")
        // 50 wake-ups a second are enough; a device with a FIFO of its own learns it by this too.
        _ = try? folder.write("buffer/watermark", "\(max(1, rows / 50))")
        try Self.write(folder, "buffer/enable", "1")
    }

    deinit { _ = try? folder.write("buffer/enable", "0") }

    /// For waiting only.
    var descriptor: Int32 { file.rawValue }

    /// Whole scans that are there now; empty when there are none.
    ///
    /// Throws `noDevice` when the device is gone.
    func read() throws(Errno) -> [UInt8] {
        do throws(Errno) {
            return try file.read(upTo: max(layout.size, Self.most / max(layout.size, 1) * layout.size))
        } catch {
            if error == .again { return [] }
            throw error
        }
    }

    static func write(_ folder: IIOFolder, _ attribute: String, _ value: String) throws(IIOFault) {
        do throws(Errno) { try folder.write(attribute, value) } catch {
            throw IIOFault(error, "writing \(value) to \(attribute)")
        }
    }
}

/// What the kernel refused, and while doing what.
struct IIOFault: Error {
    let error: Errno
    let doing: String

    init(_ error: Errno, _ doing: String) {
        self.error = error
        self.doing = doing
    }
}

/// The rate of a device, which may be one attribute or one for each quantity.
enum IIORates {
    static func attributes(_ folder: IIOFolder) -> [String] {
        folder.list(".").filter {
            $0 == "sampling_frequency" || $0.hasPrefix("in_") && $0.hasSuffix("_sampling_frequency")
        }
    }

    static func read(_ folder: IIOFolder) -> Double? {
        attributes(folder).compactMap { folder.number($0) }.filter { $0 > 0 }.min()
    }

    /// Takes the nearest rate that the driver offers; one that it refuses stays as it is, and is told by reading it back.
    static func set(_ rate: Double, _ folder: IIOFolder) {
        for attribute in attributes(folder) {
            let offers = folder.read("\(attribute)_available") ?? folder.read("sampling_frequency_available") ?? ""
            let rates = offers.split(separator: " ").compactMap { DecimalText.double(Array($0.utf8)[...]) }
            let nearest = rates.min { abs($0 - rate) < abs($1 - rate) } ?? rate
            let text = nearest == nearest.rounded() ? String(Int64(nearest)) : nearest.description
            _ = try? folder.write(attribute, text)
        }
    }
}

/// What makes a device sample.
enum IIOTrigger {
    /// Gives the device its own trigger, when it needs one and has none.
    static func choose(for folder: IIOFolder) throws(IIOFault) {
        guard folder.has("trigger/current_trigger") else { return }
        if let current = folder.read("trigger/current_trigger"), !current.isEmpty { return }
        let number = folder.index.drop { !$0.isNumber }
        let root = FilePath.parent(of: folder.path)
        let names = ((try? Files.list(root)) ?? []).filter { $0.hasPrefix("trigger") }.compactMap {
            IIOFolder(index: $0, path: "\(root)/\($0)", node: "").read("name")
        }
        // "accel_3d-dev0", "bmi160-dev0": what drivers call their own trigger.
        guard
            let own = names.first(where: { $0 == "\(folder.name)-dev\(number)" })
                ?? names.first(where: { $0.hasSuffix("-dev\(number)") })
        else { return }
        try IIOBuffer.write(folder, "trigger/current_trigger", own)
    }
}
