/// What a device measures: the elements of its scan, and how they become a row.
struct IIOShape: Sendable {
    /// With the time stamp; empty without a buffer.
    let elements: [IIOScanLayout.Element]
    let converter: IIOConverter

    init(_ folder: IIOFolder, turns: Bool) {
        var elements: [IIOScanLayout.Element] = []
        for entry in folder.list("scan_elements") where entry.hasSuffix("_en") {
            let name = String(entry.dropLast(3))
            guard let index = folder.number("scan_elements/\(name)_index").flatMap({ Int(exactly: $0) }),
                let type = folder.read("scan_elements/\(name)_type").flatMap({ IIOScanType($0) })
            else { continue }
            elements.append(IIOScanLayout.Element(name: name, index: index, type: type))
        }
        elements.sort { $0.index < $1.index }
        var channels: [IIOChannel] = []
        var known: [IIOScanLayout.Element] = []
        for element in elements {
            guard element.name != "in_timestamp" else {
                known.append(element)
                continue
            }
            guard let channel = Self.channel(element.name, folder) else { continue }
            known.append(element)
            if element.type.count == 1 {
                channels.append(channel)
            } else {
                for index in 0..<element.type.count {
                    var part = channel
                    part.name += "_\(index)"
                    channels.append(part)
                }
            }
        }
        if channels.isEmpty {
            let names = folder.list(".").filter { $0.hasPrefix("in_") && $0.hasSuffix("_raw") }
            channels = names.compactMap { Self.channel(String($0.dropLast(4)), folder) }
            known = []
        }
        self.elements = known
        converter = IIOConverter(channels) { word in turns ? Self.mount(word, folder) : nil }
    }

    /// Scale and offset stand for the one channel or for all of its kind.
    private static func channel(_ attribute: String, _ folder: IIOFolder) -> IIOChannel? {
        var names = [attribute]
        if let end = attribute.lastIndex(of: "_") { names.append(String(attribute[..<end])) }
        func first(_ suffix: String) -> Double? { names.lazy.compactMap { folder.number("\($0)_\(suffix)") }.first }
        return IIOChannel(attribute: attribute, scale: first("scale") ?? 1, offset: first("offset") ?? 0)
    }

    private static func mount(_ word: String, _ folder: IIOFolder) -> IIOMountMatrix? {
        let kernel = ["accel": "accel", "gyro": "anglvel", "mag": "magn", "gravity": "gravity"][word] ?? word
        let names = ["in_\(kernel)_mount_matrix", "in_mount_matrix", "mount_matrix"]
        return names.lazy.compactMap { folder.read($0).flatMap { IIOMountMatrix($0) } }.first
    }
}
