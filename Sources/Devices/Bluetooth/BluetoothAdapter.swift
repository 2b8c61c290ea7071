internal import CBlueZ
internal import Glibc
package import Platform

/// An adapter of this machine, and what keeps it from working.
package struct BluetoothAdapter: Sendable, Hashable {
    /// What blocks a radio of the machine.
    package enum Block: Sendable, Hashable { case soft, hard }

    /// hci0 is 0.
    package var index: Int
    package var name: String
    package var address: String
    package var isUp: Bool
    package var block: Block?

    package init(index: Int, name: String, address: String, isUp: Bool, block: Block?) {
        self.index = index
        self.name = name
        self.address = address
        self.isUp = isUp
        self.block = block
    }

    /// All adapters by index.
    ///
    /// Throws when the kernel has no Bluetooth.
    package static func all() throws(Errno) -> [BluetoothAdapter] {
        var indices = [Int32](repeating: 0, count: 16)
        let count = try throwingErrno { cbluez_adapters(&indices, 16) }
        return indices.prefix(Int(count)).sorted().compactMap { index in
            var info = cbluez_adapter()
            guard cbluez_adapter_info(index, &info) == 0 else { return nil }
            let raw = withUnsafeBytes(of: info.address) { Array($0) }
            let name = withUnsafeBytes(of: info.name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            return BluetoothAdapter(
                index: Int(index), name: name,
                address: BluetoothAddress(littleEndian: raw, .public)?.description ?? "unknown",
                isUp: info.is_up != 0, block: block(of: name))
        }
    }

    /// What rfkill says of it, in /sys.
    private static func block(of name: String) -> Block? {
        for entry in (try? Files.list("/sys/class/rfkill")) ?? [] {
            let folder = "/sys/class/rfkill/\(entry)"
            func text(_ file: String) -> String {
                let bytes = (try? Files.read("\(folder)/\(file)", limit: 256)) ?? []
                return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
            }
            guard text("type") == "bluetooth", text("name") == name else { continue }
            if text("hard") == "1" { return .hard }
            return text("soft") == "1" ? .soft : nil
        }
        return nil
    }

    /// The adapter to use: the one that is named, else the first that can work; switched on when it is off.
    ///
    /// Blocks up to some seconds while it is switched on.
    package static func ready(named wanted: String? = nil) throws(LowEnergyError) -> BluetoothAdapter {
        let adapters: [BluetoothAdapter]
        do throws(Errno) { adapters = try all() } catch {
            throw .unavailable(
                cause: "this machine's kernel has no Bluetooth (\(error))",
                cure: "load its driver, for a USB adapter: modprobe btusb")
        }
        let candidates = adapters.filter { wanted == nil || $0.name == wanted || $0.address == wanted }
        guard
            var chosen = candidates.first(where: \.isUp) ?? candidates.first(where: { $0.block == nil })
                ?? candidates.first
        else {
            let names = adapters.map { "\($0.name) (\($0.address))" }.joined(separator: ", ")
            throw .unavailable(
                cause: wanted.map {
                    "there is no Bluetooth adapter '\($0)' (there is \(names.isEmpty ? "none" : names))"
                }
                    ?? "there is no Bluetooth adapter",
                cure: "plug one in; `downbeat-agent devices` lists them")
        }
        if let block = chosen.block { throw blocked(chosen, block) }
        if !chosen.isUp {
            try chosen.switchOn()
            chosen.isUp = true
        }
        return chosen
    }

    private static func blocked(_ adapter: BluetoothAdapter, _ block: Block) -> LowEnergyError {
        switch block {
        case .soft:
            .unavailable(
                cause: "Bluetooth adapter \(adapter.name) is switched off by rfkill", cure: "rfkill unblock bluetooth")
        case .hard:
            .unavailable(
                cause:
                    "Bluetooth adapter \(adapter.name) is switched off by the machine's switch or its flight mode key",
                cure: "switch it on there")
        }
    }

    /// Through the kernel's management interface, as bluetoothd does it: low energy on, power on.
    private func switchOn() throws(LowEnergyError) {
        do throws(Errno) {
            let control = try BluetoothControl()
            try control.set(.lowEnergy, true, adapter: index)
            try control.set(.powered, true, adapter: index)
        } catch {
            switch error {
            case .notPermitted, .accessDenied:
                throw .unavailable(
                    cause: "Bluetooth adapter \(name) is off, and this program may not switch it on",
                    cure: "bluetoothctl power on; or give the agent CAP_NET_ADMIN, as downbeat-agent.service does")
            case Errno(rawValue: ERFKILL): throw Self.blocked(self, .soft)
            default:
                throw .unavailable(
                    cause: "Bluetooth adapter \(name) can't be switched on (\(error))",
                    cure: "unplug it and plug it in again; dmesg may say more")
            }
        }
    }
}
